"""Between a queue pair and its algorithms: their signals, guards, pacing, grants of credit."""
