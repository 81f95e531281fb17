"""Choose a user kernel file in the dashboard, load it, or open the Watch screen for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fwtui.common.text import sanitise
from fwtui.experiment.user_kernel_registry import find_kernel_file, name_for, register_kernel
from fwtui.machine import trust
from fwtui.tui.background import in_background
from fwtui.tui.frame.dialogs import ChoiceScreen, PickFile
from fwtui.tui.frame.frame import Frame
from fwtui.tui.frame.view import View
from fwtui_kernels.own import defines_kernel

if TYPE_CHECKING:
    from fwtui.learn.prompts import Prompt

OWN_HINT = "or the path of a file; fwtui new writes one"
MAX_OWN = 8  # maximum number of remembered files


def pick(frame: Frame, take: Callable[[Path], None], heading: str = "Watch which kernel file?") -> None:
    """Ask for a kernel file: a former one, one of the current folder, or a path. Then ask whether it may be run."""
    with frame.reporting():
        here = (str(file.resolve()) for file in sorted(Path().glob("*.py")) if defines_kernel(file))
        files = list(dict.fromkeys([*frame.view.own_files, *here]))
        choices = [(file, sanitise(file)) for file in files]

        def chosen(path: Path) -> None:
            with frame.reporting():
                allowed(frame, path, take)

        # once the dialog has closed, as it may open another one
        frame.open_dialog(PickFile(heading, choices, OWN_HINT), lambda text: frame.call_later(chosen, find_kernel_file(text)))


def allowed(frame: Frame, path: Path, take: Callable[[Path], None]) -> None:
    """Call `take` with the file. For an untrusted folder, first ask whether its files may be run."""
    if trust.is_trusted(path):
        take(path)
        return
    choices = [("no", "Do not run it"), ("yes", "Run it, and trust its folder from now on")]

    def answered(answer: str) -> None:
        if answer == "yes":
            trust.trust(path)
            take(path)

    frame.open_dialog(
        ChoiceScreen(f"{trust.warning(path)}.", choices, "Enter chooses, {key[dialog.close]} does not run it"), answered
    )


def load(frame: Frame, path: Path, take: Callable[[str], None]) -> None:
    """Load the kernel file in another process, then call `take` with the kernel's name."""

    def use(kernel: str) -> None:
        with frame.reporting("error"):
            remember(frame.view, path)
            take(kernel)

    frame.show_message(f"loading {sanitise(path.name)}")
    in_background(frame, partial(register_kernel, path), use, "kernel", lambda error: frame.show_message(str(error), "error"))


def watch(frame: Frame, path: Path, device: str, prompts: Sequence[Prompt] = ()) -> None:
    """Open the Watch screen. Its runs belong to a separate session, so that this session has none of them."""
    from fwtui.live.samplers import OFF
    from fwtui.live.session import Live
    from fwtui.live.watch_loop import Benchmarks, WatchLoop, resolve_watch_request
    from fwtui.tui.watch.screen import WatchScreen

    remember(frame.view, path)
    request = resolve_watch_request(path, name_for(path), device, None, 0, 0)
    source = frame.view.source
    samples = source.samples if source is not None else OFF
    times = Benchmarks(request, lambda: Live(telemetry_hz=0.0), lambda: frame.view.busy, samples)
    frame.open_dialog(WatchScreen(WatchLoop(request, times), prompts))


def remember(view: View, path: Path) -> None:
    view.own_files = tuple(dict.fromkeys([str(path), *view.own_files]))[:MAX_OWN]
