"""Why a key can do nothing now: no key that the help names is silent."""

from __future__ import annotations

from textual.screen import Screen

from fwtui.tui.frame.view import View


class Reasoned(Screen[None]):
    """A screen whose keys say why they can do nothing now; frames know their own keys."""

    view: View

    def say(self, text: str, level: str = "info") -> None:
        raise NotImplementedError

    def key_of(self, name: str) -> str:
        raise NotImplementedError

    def say_why(self, action: str) -> None:
        """Tell the user why that action, whose key was pressed, is not possible; nothing where that needs no words."""
        sentence = self.why_not(action)
        if sentence:
            self.say(sentence)

    def why_not(self, action: str) -> str:
        """Why check_action() says no to an action of this screen, in a few words; nothing where another binding has the key."""
        match action:
            case "cancel":
                return "nothing is going that could be cancelled"
            case "mark":
                return f"nothing is being recorded that a marker could be left in; {self.key_of('record')} records"
            case "cursor":
                return "there is nothing here now that the arrows could move"
            case "answer":
                return "no marker that asks a question stands here"
        return ""

    @property
    def busy_words(self) -> str:
        """Why nothing can be started while something goes on."""
        return f"something is running; {self.key_of('cancel')} cancels it"
