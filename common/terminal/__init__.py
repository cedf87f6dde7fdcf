"""The terminal: columns, a console that outlasts its reader, text without control characters, output cut short."""

__all__ = ["columns", "console", "printable", "standard_streams"]
