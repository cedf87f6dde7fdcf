"""Sweeping: one experiment on many seeds, and statements about it with a confidence."""
