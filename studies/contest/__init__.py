"""Algorithms against each other on the same seeds: `./lab contest`."""
