"""One experiment on many seeds: sweeps with intervals, and hunts for what breaks."""
