"""The watchers of the machine during a run in real time: how busy it is, and how late its processes run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from common.journal import Journal
from running.directory import RunDirectory
from running.machine.hiccup import HiccupMeter
from running.machine.processor import ProcessorSampler


@contextmanager
def watched(directory: RunDirectory, journal: Journal) -> Iterator[None]:
    """Both watchers while it is entered: `cpu` lines in the runner's journal, `stall` and `hiccup` lines in another."""
    with HiccupMeter(directory.journal("meter")), ProcessorSampler(journal):
        yield
