"""Commands that run an experiment on many seeds."""
