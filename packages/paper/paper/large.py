"""The large sizes of figures 16 and 17, without loss: runs of hours, made on demand only."""

from __future__ import annotations

from dataclasses import replace

from paper.figure import Figure
from paper.random_loss import LOSSES, TRANSPORTS, LossyCollective, quantity_name

SIZES_MB = (128, 256, 512, 1024)


def large(collective: LossyCollective, title: str) -> Figure:
    """The figure's large sizes. Each quantity must fail as the run of 2 MB does of which a thousandth is lost."""
    whole = replace(collective, sizes={0.0: SIZES_MB, LOSSES[1]: (2,)})
    names = {quantity_name(transport, 0.0, size) for transport in TRANSPORTS for size in SIZES_MB}
    return Figure(
        name=f"{collective.figure}-large",
        title=title,
        caption=f"As figure {collective.figure}, with payload that is counted and not carried.",
        parts=whole.parts,
        quantities=tuple(one for one in whole.quantities({}) if one.name in names),
        orders=tuple(one for one in whole.orders() if one.first in names),
        compression="Time is not compressed. The paper goes on to 16 GB.",
    )
