"""Figure 17 without loss from 128 MB to 1 GB: made on demand."""

from __future__ import annotations

from paper.figures.collectives import figure_17
from paper.large import large

COLLECTIVE = large(figure_17.COLLECTIVE)
parts = COLLECTIVE.parts
