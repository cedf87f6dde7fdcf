"""Names bound, types worked out, compile-time values computed."""
