"""Parsers: states, and what happens in them."""
