"""The worlds that a run may happen in."""
