"""Reproducing: the figures and tables of the MRC paper, run here and compared with the paper point by point."""

__all__ = ["clock", "cluster", "figure", "measuring", "pair", "readings"]
