"""Figure 17 without loss from 128 MB to 1 GB: made on demand."""

from __future__ import annotations

from paper.figures.collectives.figure_17 import EXCHANGE_17
from paper.large import large

FIGURE = large(EXCHANGE_17, "All-to-all of 64 NICs without loss, 128 MB to 1 GB")
