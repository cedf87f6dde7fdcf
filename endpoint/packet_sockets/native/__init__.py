"""A port's receive ring in C, of the compiled form alone."""
