"""The runs of figures in one file, so that others can compute on them, make the page from them, and go on.

The file is gzipped JSON, a line for each run: `figure`, `part` (its name there), and what its row has: `key`, `seed`,
`verdict`, `metrics` and `curves`, without what is empty. Numbers have the units of the figure's quantities.
"""

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import files, plain_file
from paper import catalogue
from paper.figure import Figure
from paper.outcome import Outcome
from paper.reproduction import Place, Reproduction
from studies.sweeping import Row, RowStore

RECORDED = Path(__file__).parent / "recorded.jsonl.gz"
"""The runs behind `docs/reproduction.md`, which `--recorded` shows."""
WRITTEN = ("key", "seed", "verdict", "metrics", "curves")
"""How long a run took is left out: the same runs make the same bytes, wherever they are made."""
BYTES_MAX = 1 << 28
"""Of all lines together: a hundred times the page's."""


def read(path: Path) -> dict[Place, Row]:
    """The runs of a file. FileNotFoundError. ValueError names the file and what is wrong with it."""
    rows: dict[Place, Row] = {}
    try:
        with plain_file.open_named(path) as file, gzip.open(file) as packed:
            text = packed.read(BYTES_MAX + 1)
        if len(text) > BYTES_MAX:
            raise ValueError(f"more than {BYTES_MAX} bytes")
        for line in text.decode().splitlines():
            content = plain_file.parse_json(line)
            place = str(content["figure"]), str(content["part"])
            rows[place] = row_of(content)
    except FileNotFoundError:
        raise
    except (OSError, EOFError, ValueError, TypeError, LookupError, RecursionError, zlib.error) as error:
        raise ValueError(
            f"{path} must be a file of runs ({type(error).__name__}: {plain_file.text_fault(error)})"
        ) from None
    return rows


def outcomes(rows: Mapping[Place, Row], figures: Sequence[Figure]) -> list[Outcome]:
    """The outcomes of figures by the runs of a file, also where the code has changed since."""
    named: dict[str, dict[str, Row]] = {}
    for (figure, part), row in rows.items():
        named.setdefault(figure, {})[part] = row
    return [Outcome(figure, named.get(figure.name, {}), list(named.get(figure.name, {}))) for figure in figures]


def hand_over(path: Path, rows: Mapping[Place, Row], store: RowStore) -> None:
    """Put the runs of a file into a store. ValueError names the file, and a number that a run of this code lacks."""
    named = {figure for figure, _ in rows}.intersection(catalogue.MODULES)
    known = Reproduction([catalogue.find(name) for name in sorted(named)], store, intervals=True)
    try:
        known.take(rows.values())
    except ValueError as error:
        raise ValueError(f"{path} must be a file of runs ({error})") from None


def write(path: Path, rows: Mapping[Place, Row]) -> None:
    """Replace the file. The same runs make the same bytes. OSError names the file."""
    lines = []
    for figure, part in sorted(rows):
        row = {name: value for name, value in asdict(rows[figure, part]).items() if name in WRITTEN and value}
        lines.append(json.dumps({"figure": figure, "part": part, "seed": 0, **row}, separators=(",", ":")) + "\n")
    files.write(path, gzip.compress("".join(lines).encode(), mtime=0))


def row_of(content: Mapping[str, Any]) -> Row:
    """The row in a line. ValueError, TypeError or LookupError if it is none."""
    row = Row.from_text(json.dumps({name: content[name] for name in WRITTEN if name in content}))
    if not isinstance(row.key, str) or type(row.seed) is not int:
        raise ValueError(f"key must be text and seed a whole number (got {row.key!r}, {row.seed!r})")
    if not isinstance(row.metrics, dict) or not isinstance(row.curves, dict):
        raise ValueError("metrics and curves must be objects")
    points = [number for curve in row.curves.values() for point in curve for number in point]
    for number in (*row.metrics.values(), *points):
        if type(number) not in (int, float):
            raise ValueError(f"metrics and curves must be of numbers (got {number!r})")
    return row
