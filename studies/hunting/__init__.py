"""Hunting: timelines that nobody wrote, what must hold under all of them, and the smallest one that breaks it."""
