"""How far a farm's jobs are: a live picture on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live

LINE_S = 10.0  # between two lines where the output cannot be redrawn
REFRESH_HZ = 2


class Progress:
    """A context manager; `tell` after each job. With `plain`, or without a terminal, lines instead of a picture."""

    def __init__(self, console: Console, plain: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._began_s = self._told_s = clock()
        live = console.is_terminal and not plain and not console.quiet
        self._live = Live(get_renderable=self.picture, console=console, refresh_per_second=REFRESH_HZ) if live else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def picture(self) -> RenderableType:
        """The picture for a terminal."""
        return self.line()

    def line(self) -> str:
        """Everything in one line."""
        raise NotImplementedError

    def tell(self, now: bool = False) -> None:
        """A job has ended; `now`: the line is printed at once, also on a terminal."""
        if now or (self._live is None and self._clock() - self._told_s >= LINE_S):
            self._told_s = self._clock()
            self._console.print(self.line(), highlight=False, soft_wrap=True, markup=False)
