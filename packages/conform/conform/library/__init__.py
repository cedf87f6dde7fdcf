"""A library under test: programs in C over `mrc.h` and verbs."""
