"""The table that a test prints: perftest's columns."""

import json
from collections.abc import Sequence
from typing import Any

from mrclab.perf.options import PerfOptions

RULE = "-" * 87
_MB = 1 << 20


def bandwidth_columns(options: PerfOptions) -> tuple[str, ...]:
    unit = "Gb/sec" if options.gbits else "MB/sec"
    return "#bytes", "#iterations", f"BW peak[{unit}]", f"BW average[{unit}]", "MsgRate[Mpps]"


def bandwidth_row(
    options: PerfOptions, size: int, messages: int, average_s: float, peak_s: float | None
) -> tuple[Any, ...]:
    """`average_s` and `peak_s` are seconds per message; a peak of None is not measured, and 0 as in perftest."""
    per_second = size * 8 / 1e9 if options.gbits else size / _MB
    peak = per_second / peak_s if peak_s else 0.0
    return size, messages, round(peak, 6), round(per_second / average_s, 6), round(1e-6 / average_s, 6)


def head(title: str, facts: Sequence[tuple[str, object]], columns: Sequence[str], *, as_json: bool) -> None:
    """Everything above the rows."""
    if as_json:
        return
    print(RULE)
    print(f"                    {title}")
    for name, value in facts:
        print(f" {name:<16}: {value}")
    print(RULE)
    print(" " + "".join(f"{name:<{_width(name)}}" for name in columns), flush=True)


def row(values: Sequence[Any], columns: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(dict(zip(columns, values, strict=True))), flush=True)
        return
    print(" " + "".join(f"{value:<{_width(name)}}" for value, name in zip(values, columns, strict=True)), flush=True)


def foot(*, as_json: bool) -> None:
    if not as_json:
        print(RULE, flush=True)


def _width(name: str) -> int:
    return max(len(name) + 2, 11)
