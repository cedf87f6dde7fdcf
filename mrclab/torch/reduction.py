"""How items of two ranks are combined, per operation and dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

Tensor = Any


@dataclass(frozen=True, slots=True)
class Reduction:
    """`into` combines a part with what is there, in place; `end` turns the combination of all ranks into the result."""

    into: Callable[[Tensor, Tensor], None]
    end: Callable[[Tensor], None]


def _sum(place: Tensor, part: Tensor) -> None:
    if place.dtype == torch.bool:
        place.logical_or_(part)
    else:
        place.add_(part)


def _product(place: Tensor, part: Tensor) -> None:
    place.mul_(part)


def _least(place: Tensor, part: Tensor) -> None:
    torch.minimum(place, part, out=place)


def _most(place: Tensor, part: Tensor) -> None:
    torch.maximum(place, part, out=place)


_OPERATIONS: dict[str, Callable[[Tensor, Tensor], None]] = {
    "SUM": _sum,
    "AVG": _sum,
    "PRODUCT": _product,
    "MIN": _least,
    "MAX": _most,
    "BAND": lambda place, part: place.bitwise_and_(part),
    "BOR": lambda place, part: place.bitwise_or_(part),
    "BXOR": lambda place, part: place.bitwise_xor_(part),
}


def reduction(op: Any, dtype: Any, size: int) -> Reduction:
    """For `size` ranks. ValueError names the operations that this dtype has."""
    name = next(
        (name for name in _OPERATIONS if hasattr(dist.ReduceOp, name) and op == getattr(dist.ReduceOp, name)), ""
    )
    valid = _valid(dtype)
    if name not in valid:
        raise ValueError(f"backend mrc: the operation must be one of {', '.join(valid)} for {dtype} (got {name or op})")
    return Reduction(_OPERATIONS[name], (lambda data: data.div_(size)) if name == "AVG" else lambda data: None)


def _valid(dtype: Any) -> list[str]:
    if dtype.is_complex:
        return ["SUM", "AVG", "PRODUCT"]
    if dtype.is_floating_point:
        return ["SUM", "AVG", "PRODUCT", "MIN", "MAX"]
    return [name for name in _OPERATIONS if name != "AVG"]
