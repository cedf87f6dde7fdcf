"""The model with one of its rules or constants changed: how the results depend on it."""
