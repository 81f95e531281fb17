"""Style sheets of which each is parsed when it comes; Textual goes through all of them again whenever a kind of widget is new."""

from __future__ import annotations

from textual.css.model import RuleSet
from textual.css.stylesheet import CssSource, Stylesheet


class StyleSheets(Stylesheet):
    def __init__(self, *, variables: dict[str, str]) -> None:
        super().__init__(variables=variables)
        self._parsed: dict[object, tuple[CssSource, list[RuleSet]]] = {}  # by where they were read

    def set_variables(self, variables: dict[str, str]) -> None:
        super().set_variables(variables)
        self._parsed.clear()

    def parse(self) -> None:
        """Parse what is new or has changed."""
        every = self.source
        try:
            for where, source in every.items():
                if where not in self._parsed or self._parsed[where][0] != source:
                    self.source = {where: source}
                    super().parse()
                    self._parsed[where] = source, self._rules
        finally:
            self.source = every
        self._rules = [rule for where in every for rule in self._parsed[where][1]]
        self._require_parse, self._rules_map = False, None
