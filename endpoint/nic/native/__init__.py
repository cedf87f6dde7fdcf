"""The codec's hottest calls in C, of the compiled form alone."""
