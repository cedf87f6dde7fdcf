"""How many records a host keeps, by owner: a leak that grows with every fault is found here.

Every container that can be reached from an object is counted under the class of the object that holds it.
"""

from __future__ import annotations

import gc
import types
from collections import Counter, deque
from collections.abc import Iterable
from enum import Enum
from typing import Any

CONTAINERS = (list, dict, set, deque)
# What is code, or leads out of the host to what drives it.
PASSED_OVER = (
    type, types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.CodeType,
    types.FrameType, types.CellType, Enum,
)  # fmt: skip


def count_records(roots: Iterable[Any]) -> dict[str, int]:
    """Entries of all containers by `Class.container`, each container once.

    Containers whose class says that they are not `OF_ONE_HOST` are left out, with all that is in them alone.
    """
    counted: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[tuple[Any, str]] = [(root, type(root).__name__) for root in roots]
    kept = [root for root, _ in waiting]  # an id names an object only while the object lives
    while waiting:
        thing, owner = waiting.pop()
        if id(thing) in seen or isinstance(thing, PASSED_OVER) or not gc.is_tracked(thing):
            continue
        if not getattr(type(thing), "OF_ONE_HOST", True):
            continue
        seen.add(id(thing))
        kept.append(thing)
        if isinstance(thing, CONTAINERS):
            counted[f"{owner}.{type(thing).__name__}"] += len(thing)
        elif not isinstance(thing, tuple):
            owner = type(thing).__name__
        waiting += [(other, owner) for other in gc.get_referents(thing)]
    return dict(sorted(counted.items()))
