"""Lab 1: uSIDs by hand."""
