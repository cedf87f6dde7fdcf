"""A console of rich that outlives its reader. Import this module late, because rich takes a moment to import."""

from rich.console import Console

from common.terminal.printable import printable_text
from common.terminal.standard_streams import lost_reader, silence

__all__ = ["LastingConsole"]


class LastingConsole(Console):
    """A console that falls silent once its reader has gone, such as `| head -1`.

    rich's own console ends the process with status 1 there, which a run would report as a false verdict.
    """

    def tell(self, text: str) -> None:
        """Print text as it is: names may hold square brackets, which are no markup here, and what a terminal obeys."""
        self.print(printable_text(text), highlight=False, soft_wrap=True, markup=False)

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError as error:
            if not lost_reader(error, self.file):
                raise
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        self.quiet = True
        silence(self.file)
