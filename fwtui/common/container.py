"""A container in which a user's file runs: podman's or docker's, without a network, with nothing that it can write but /tmp."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from shutil import which

from msgspec import Struct
from msgspec.structs import replace

from fwtui import __version__
from fwtui.common.errors import Refused
from fwtui.common.text import clean, quoted

TOOLS = ("podman", "docker")
ROOM = "/tmp"  # in memory, and the container's own
MOST_PROCESSES = 512  # and threads
BEGINS_WITHIN = 120.0  # seconds: an image may have to be fetched


class Container(Struct, frozen=True, kw_only=True):
    """An image with this program, and what a process in it may take."""

    tool: str  # its path
    image: str
    memory: float = 4.0  # GiB
    gpu: bool = False
    files: tuple[str, ...] = ()  # that it can read, and folders, at the places that they have here

    def with_files(self, files: Sequence[object]) -> Container:
        return replace(self, files=(*self.files, *map(str, files)))

    def command(self, name: str, environment: Mapping[str, str], words: Sequence[str]) -> list[str]:
        """The command line of Python there, with these words."""
        docker = os.path.basename(self.tool) == "docker"
        variables = {**environment, "HOME": ROOM, "XDG_CACHE_HOME": ROOM, "NUMBA_CACHE_DIR": ROOM}
        command = [self.tool, "run", "--rm", "--interactive", "--name", name, "--network", "none", "--read-only"]
        command += ["--tmpfs", f"{ROOM}:rw,exec", "--workdir", ROOM, "--cap-drop", "all"]
        command += ["--security-opt", "no-new-privileges", "--security-opt", "label=disable"]
        command += ["--memory", f"{self.memory:g}g", "--pids-limit", str(MOST_PROCESSES)]
        # podman's root is this user; docker's could not read what only this user can
        command += ["--user", f"{os.getuid()}:{os.getgid()}"] * docker
        command += (["--gpus", "all"] if docker else ["--device", "nvidia.com/gpu=all"]) * self.gpu
        command += [word for file in self.files for word in ("--volume", f"{file}:{file}:ro")]
        command += [word for item in variables.items() for word in ("--env", "=".join(item))]
        return [*command, self.image, "python3", "-P", *words]

    def tell(self, order: str, name: str) -> None:
        """Have the tool pause, unpause or kill a container; that it has ended is no mistake."""
        with suppress(OSError):
            subprocess.run([self.tool, order, name], capture_output=True, check=False)


def container_of(image: str, memory: float, gpu: bool) -> Container:
    """One of that image, which has been tried. Raises Refused."""
    if not image.strip() or image.startswith("-"):  # it would be an option, which may open the container
        raise Refused(f"{quoted(image)} is not the name of an image; give one with fwtui in it")
    tool = next(filter(None, map(which, TOOLS)), None)
    if tool is None:
        raise Refused(f"a container takes {' or '.join(TOOLS)}, and neither is on PATH; install one, or leave out --container")
    container = Container(tool=tool, image=image, memory=memory, gpu=gpu)
    command = container.command(f"fwtui-{os.urandom(8).hex()}", {}, ["-m", "fwtui", "--version"])
    try:
        ended = subprocess.run(command, capture_output=True, timeout=BEGINS_WITHIN, stdin=subprocess.DEVNULL, check=False)
        output = (ended.stderr if ended.returncode else ended.stdout).decode("utf-8", "replace")
        # docker's last line names its help, and the one before it why
        lines = [line for line in output.splitlines() if line.strip() and not line.startswith("Run 'docker")]
    except (OSError, subprocess.TimeoutExpired) as error:
        lines = [str(error)]
    if lines[:1] != [f"fwtui {__version__}"]:
        message = clean(lines[-1]) if lines else "it says nothing"
        name = os.path.basename(tool)
        raise Refused(f"{name} does not run fwtui {__version__} in {quoted(image)}: {message}; choose an image with that in it")
    return container
