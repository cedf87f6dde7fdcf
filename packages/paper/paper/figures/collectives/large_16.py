"""Figure 16 without loss from 128 MB to 1 GB, where the paper's RoCE on one queue pair falls behind: made on demand."""

from __future__ import annotations

from paper.figures.collectives.figure_16 import RING_16
from paper.large import large

FIGURE = large(RING_16, "Ring all-reduce of 64 NICs without loss, 128 MB to 1 GB")
