"""Runs of many subjects in one table of comma-separated values, so that others can compute on them and go on."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import files
from studies.sweeping.metric import METRICS
from studies.sweeping.row import VERDICTS, Row
from studies.sweeping.store import RowStore
from studies.sweeping.subject import Subject

OTHERS = ("code", "seed", "verdict")
Place = tuple[str, ...]
"""The texts that name one subject, such as rate, scenario and algorithm."""


@dataclass(frozen=True, slots=True)
class RunTable:
    """Rows by place and seed. `names` are those of the columns that make a place.

    The column `code` has the beginning of the key that the subject's run with seed 0 would have: of other code, another
    plan or other choices it is another.
    """

    names: Sequence[str]
    subjects: Mapping[Place, Subject]

    def read(self, path: Path) -> tuple[list[Row], list[Row]]:
        """The rows of a file for these subjects, with their present keys: those of this code, and those of other code.

        FileNotFoundError. ValueError names the file and what is wrong with it.
        """
        found: tuple[list[Row], list[Row]] = ([], [])
        try:
            for place, line in self._lines(path):
                if (subject := self.subjects.get(place)) is not None:
                    found[line["code"] != code_of(subject)].append(row_of(line, subject))
        except FileNotFoundError:
            raise
        except (OSError, EOFError, ValueError, LookupError, zlib.error, csv.Error) as error:
            raise ValueError(f"{path} must be a table of runs ({type(error).__name__}: {error})") from None
        return found

    def strangers(self, path: Path) -> list[Place]:
        """The places of a file's runs that are none of these subjects': `write` would lose these runs."""
        return sorted({place for place, _ in self._lines(path)} - set(self.subjects))

    def _lines(self, path: Path) -> Iterator[tuple[Place, dict[str, str]]]:
        text = gzip.decompress(path.read_bytes()).decode()
        for line in csv.DictReader(io.StringIO(text)):
            yield tuple(line[name] for name in self.names), line

    def write(self, path: Path, store: RowStore, seeds: Sequence[int]) -> None:
        """Write the store's rows of these seeds; the same rows make the same bytes."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([*self.names, *OTHERS, *METRICS])
        for place, subject in self.subjects.items():
            rows = store.find(subject.key(seed) for seed in seeds)
            for row in sorted(rows.values(), key=lambda one: one.seed):
                writer.writerow([*place, code_of(subject), row.seed, row.verdict, *numbers_of(row)])
        files.write(path, gzip.compress(buffer.getvalue().encode(), mtime=0))


def code_of(subject: Subject) -> str:
    """Eight hexadecimal digits of the key of the subject's run with seed 0."""
    return subject.key(0)[:8]


def numbers_of(row: Row) -> list[str]:
    """A run's metrics as a file has them."""
    return [f"{row.metrics[name]:.9g}" if name in row.metrics else "" for name in METRICS]


def same(one: Row, other: Row) -> bool:
    """Whether a file would have the same verdict and numbers of two runs."""
    return (one.verdict, numbers_of(one)) == (other.verdict, numbers_of(other))


def row_of(line: Mapping[str, str], subject: Subject) -> Row:
    """ValueError for what is no run."""
    if line["verdict"] not in VERDICTS:
        raise ValueError(f"a verdict must be one of {', '.join(VERDICTS)} (got {line['verdict']!r})")
    seed = int(line["seed"])
    metrics = {name: float(line[name]) for name in METRICS if line.get(name)}
    return Row(subject.key(seed), seed, line["verdict"], metrics=metrics)
