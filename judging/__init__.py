"""Judging: pure folds over a run's merged journal, from statistics to a verdict and a report."""
