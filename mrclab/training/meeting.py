"""How ranks find each other: each puts a file into a folder that all see, and waits for the others'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from common import files
from mrclab.context import Context

_LOOK_S_MAX = 0.05


def meet(
    context: Context, folder: Path, name: str, rank: int, ranks: int, mine: Any, timeout_s: float = 60.0
) -> list[Any]:
    """The values that all ranks bring, in order of rank. TimeoutError names those that have not come.

    Time is the lab's, so that ranks can meet in virtual time as well.

    A name is for one meeting: two meetings have two names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = [folder / f"{name}-{number}.json" for number in range(ranks)]
    files.write_json(places[rank], mine)
    look_s = min(_LOOK_S_MAX, context.query_device().base_rtt_ns / 1e9)
    deadline_ns = context.now_ns() + round(timeout_s * 1e9)
    while missing := [number for number, place in enumerate(places) if not place.exists()]:
        if context.now_ns() > deadline_ns:
            raise TimeoutError(f"ranks {missing} have not come within {timeout_s:g} s")
        context.sleep(look_s)
    return [json.loads(place.read_text()) for place in places]
