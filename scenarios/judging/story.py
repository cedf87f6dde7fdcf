"""What a scenario says of itself in reports: a title, a description, and what the paper measured in the like of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaperRow:
    """What the paper measured in the experiment that a scenario follows."""

    figure: str
    test: str
    result: str


@dataclass(frozen=True, slots=True)
class Story:
    """What a scenario says of itself. `title` is a claim that a run shows to be true or false."""

    title: str
    description: str
    paper: tuple[PaperRow, ...] = ()
