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


_OPERATIONS: dict[str, Callable[[Tensor, Tensor], None]] = {
    "SUM": _sum,
    "AVG": _sum,
    "PRODUCT": lambda place, part: place.mul_(part),
    "MIN": lambda place, part: torch.minimum(place, part, out=place),
    "MAX": lambda place, part: torch.maximum(place, part, out=place),
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
    one = torch.empty(1, dtype=dtype, device="cpu")
    try:  # here, before anything is sent
        _OPERATIONS[name](one, one.clone())
    except RuntimeError as error:
        raise ValueError(f"backend mrc: PyTorch has no {name} of {dtype} on CPUs ({error})") from error
    return Reduction(_OPERATIONS[name], (lambda data: data.div_(size)) if name == "AVG" else lambda data: None)


def _valid(dtype: Any) -> list[str]:
    if dtype.is_complex:
        return ["SUM", "AVG", "PRODUCT"]
    if dtype.is_floating_point:
        return ["SUM", "AVG", "PRODUCT", "MIN", "MAX"]
    return [name for name in _OPERATIONS if name != "AVG"]
