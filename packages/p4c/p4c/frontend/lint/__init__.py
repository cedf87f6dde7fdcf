"""Warnings about what the language allows and a program's author hardly means."""
