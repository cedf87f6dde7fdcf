"""Folds over a run's journal: goodput, steps, flows, recovery, planes, paths, counters."""
