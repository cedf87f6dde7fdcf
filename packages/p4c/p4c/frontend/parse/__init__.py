"""Characters to a syntax tree."""
