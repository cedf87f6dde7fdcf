"""The large sizes of figures 16 and 17, without loss: runs of hours, made on demand only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from paper.figure import Chart, Order, Quantity
from paper.random_loss import LOSSES, LossyCollective

SIZES_MB = (128, 256, 512, 1024)


class LargeCollective(LossyCollective):
    """A collective's large sizes. Each quantity must fail as the run of 2 MB does of which a thousandth is lost."""

    def quantities(self, reasons: Mapping[str, str]) -> list[Quantity]:
        return [quantity for quantity in super().quantities(reasons) if _large(quantity.name)]

    def orders(self) -> list[Order]:
        return [order for order in super().orders() if _large(order.first)]

    def charts(self) -> list[Chart]:
        return []


def large(usual: LossyCollective) -> LargeCollective:
    """The same collective with the large sizes."""
    own = {field.name: getattr(usual, field.name) for field in fields(usual)}
    return LargeCollective(**{**own, "sizes": {0.0: SIZES_MB, LOSSES[1]: (2,)}})


def _large(quantity: str) -> bool:
    return quantity.endswith(tuple(f", 0 % loss, {size} MB" for size in SIZES_MB))
