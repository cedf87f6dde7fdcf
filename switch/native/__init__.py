"""The native data plane: C emitted for a program, a small C runtime, and the thread that drives it over interfaces."""
