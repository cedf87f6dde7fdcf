"""The forms of files that can be imported, one module each."""
