"""A tester for MRC devices: a matrix of rules, and what holds NICs, switches and libraries against them."""

__all__ = ["bundle", "matrix", "result", "rule"]
