"""The labs, a folder for each: page, starter, hints and tests."""
