"""Folds over a run's journal: goodput, steps, flows, recovery, planes, paths, counters."""

__all__ = ["completions", "cost", "counters", "goodput", "paths", "planes", "recovery", "stalls", "steps"]
