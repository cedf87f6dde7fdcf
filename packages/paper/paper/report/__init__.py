"""Outcomes as tables, a page, Markdown, JSON and text for a terminal."""
