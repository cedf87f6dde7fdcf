"""Grading: a folder of submissions becomes results, tables and pages; other services' formats and archives."""
