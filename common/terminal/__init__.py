"""The terminal: valid choices, columns, a console that outlasts its reader, text without control characters or cut."""

__all__ = ["choices", "columns", "console", "counted", "printable", "progress", "standard_streams"]
