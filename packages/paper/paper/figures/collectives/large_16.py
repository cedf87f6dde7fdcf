"""Figure 16 without loss from 128 MB to 1 GB, where the paper's RoCE on one queue pair falls behind: made on demand."""

from __future__ import annotations

from paper.figures.collectives import figure_16
from paper.large import large

COLLECTIVE = large(figure_16.COLLECTIVE)
parts = COLLECTIVE.parts
