"""How far a hunt is: tries, how fast, and what was found."""

from rich.console import RenderableType
from rich.text import Text

from common.terminal.counted import counted
from studies.farm.progress import Progress
from studies.hunting.hunt import Hunt


class HuntProgress(Progress):
    """`hunt` is set before the first word is told. A finding is always printed."""

    hunt: Hunt | None = None
    _words = ""

    def pace(self) -> str:
        """Tries, how fast, and what was found."""
        hunt = self.hunt
        if hunt is None or not hunt.tries:
            return "nothing tried yet"
        a_minute = hunt.tries / max(hunt.elapsed_s, 1e-9) * 60
        tries, finds = counted(hunt.tries, "try", "tries"), counted(len(hunt.catches), "thing")
        return f"{tries}, {a_minute:.0f} a minute, {finds} found"

    def line(self) -> str:
        return f"{self.pace()}; {self._words}"

    def picture(self) -> RenderableType:
        return Text(self.line())  # text: square brackets in a name are no markup

    def happened(self, words: str) -> None:
        """Something has happened."""
        self._words = words
        self.tell(now=" broke: " in words)
