"""A scenario's own words in reports: a title, a description, and the paper's figures for a like experiment."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A measurement of the paper, from the experiment that a scenario follows."""

    figure: str
    test: str
    result: str


@dataclass(frozen=True, slots=True)
class Story:
    """A scenario's own words. `title` is a claim that a run shows to be true or false."""

    title: str
    description: str
    paper: tuple[PaperRow, ...] = ()
