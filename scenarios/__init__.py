"""Experiments: a timeline of faults beside the checks that judge it."""
