"""The terminal: valid choices, columns, a console that outlasts its reader, names of imported fabrics, text without control characters or cut."""

__all__ = ["choices", "columns", "console", "counted", "printable", "progress", "source_names", "standard_streams"]
