"""What is on the screen as a file, and in the clipboard where the terminal lets it: screen, table, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from fwtui.common.errors import Refused
from fwtui.stream.model import Model
from fwtui.tui.frame.dialogs import Dialog
from fwtui.tui.frame.view import View

if TYPE_CHECKING:
    from fwtui.tui.frame.saved import Table

MOST_COPIED = 100_000  # characters: terminals drop longer ones, or hang
SHOWN_SECONDS = 12


class Form(NamedTuple):
    """One way to keep what is shown."""

    name: str
    title: str
    suffix: str
    copied: bool = True  # whether the clipboard gets it as well


FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("table-tsv", "the table, for a spreadsheet (TSV)", ".tsv"),
        Form("table-markdown", "the table as Markdown", ".md"),
        Form("results-csv", "everything known of every run, as CSV", ".csv"),
        Form("results-json", "everything known of every run, as JSON", ".json"),
        Form("screen-svg", "the screen as a picture (SVG)", ".svg", copied=False),
        Form("screen-text", "the screen as text", ".txt"),
    )
}


class SaveScreen(Dialog):
    """Asks in which form; answers its name."""

    DEFAULT_CSS = "SaveScreen OptionList { height: auto; max-height: 14; border: none; padding: 0; }"
    TITLE = "Save"
    HINT = "Enter saves it in a new file and says where; text goes to the clipboard too, if the terminal lets it"

    def __init__(self, offered: Sequence[str]):
        super().__init__()
        self._offered = offered

    def body(self) -> ComposeResult:
        yield OptionList(*(Option(Content(FORMS[name].title), id=name) for name in self._offered), markup=False, compact=True)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(event.option.id)


class Saved(Screen[None]):
    """A screen that shows a view and can be saved."""

    PLACE: ClassVar = ""

    def __init__(self, view: View):
        super().__init__()
        self.view = view

    @property
    def model(self) -> Model:
        return self.view.model

    def say(self, text: str, level: str = "info") -> None:
        """A sentence on the log line."""
        raise NotImplementedError

    def table(self) -> Table:
        """What this place saves as a table: titles, then rows. Nothing where it has none."""
        from fwtui.analysis.columns import PRINTED_HEAD, printed

        if not self.model.runs:
            return ()
        baseline = self.view.baseline_run.experiment.kernel if self.view.baseline_run is not None else None
        return [PRINTED_HEAD, *(printed(self.model, run, baseline) for run in self.model.runs.values())]

    def savable(self) -> list[str]:
        """The forms in which there is something to save."""
        gone = ("table" if not self.table() else "", "results" if not self.model.runs else "")
        return [name for name in FORMS if name.partition("-")[0] not in gone]

    def action_save(self) -> None:
        def chosen(name: str | None) -> None:
            if name is not None:
                self.save_soon(name)

        self.app.push_screen(SaveScreen(self.savable()), chosen)

    def save_soon(self, name: str) -> None:
        """Save it, but not before what asked for it is gone from the screen."""
        self.call_after_refresh(self.save, name)

    def save(self, name: str) -> None:
        """Keep what is shown in one of FORMS, and say where."""
        from fwtui.tui.frame import saved
        from fwtui.tui.frame.shot import screen_svg, screen_text

        form = FORMS[name]
        match name:
            case "table-tsv":
                text = saved.tsv(self.table())
            case "table-markdown":
                text = saved.markdown(self.table())
            case "results-csv":
                text = saved.results_csv(self.model)
            case "results-json":
                text = saved.results_json(self.model)
            case "screen-svg":
                text = screen_svg(self.app)
            case _:
                text = screen_text(self.app)
        try:
            path = saved.write(f"fwtui-{self.PLACE}-{name}", form.suffix, text)
        except Refused as refusal:
            self.say(str(refusal), "error")
            return
        copied = form.copied and len(text) <= MOST_COPIED
        if copied:
            self.app.copy_to_clipboard(text)
        also = "also sent to the clipboard, which not every terminal takes" if copied else ""
        # the log line may be too short for the path; this is not
        self.app.notify(f"{path}\n{also}".strip(), title="Saved", markup=False, timeout=SHOWN_SECONDS)
        self.say(f"saved {path}")
