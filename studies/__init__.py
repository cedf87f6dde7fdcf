"""One experiment on many seeds: sweeps with intervals, and hunts for what breaks."""

__all__ = ["contest", "farm", "hunting", "sweeping"]
