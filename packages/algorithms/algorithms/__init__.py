"""Path selections, congestion controls and loss rules that are not MRC's, over the seams of `endpoint.mrc`."""

__all__ = [
    "bitmap",
    "dctcp",
    "entropies",
    "mixed",
    "plb",
    "rccc",
    "reps",
    "round_robin",
    "sleek",
    "smartt",
    "swift",
    "two_choices",
]
