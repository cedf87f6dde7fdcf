"""The terminal: choices, columns, a console that outlasts its reader, names of imported fabrics, text that is safe."""

__all__ = ["choices", "columns", "console", "counted", "printable", "progress", "source_names", "standard_streams"]
