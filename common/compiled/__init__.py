"""Python modules compiled by mypyc, as a second form beside their sources: a build is used only for the very sources
that it was made of, so that an edit takes effect at once, and nothing needs a build.

`finder` imports a build if there is one, `build` makes one, `unit` says what belongs together and when a build fits.
"""

__all__ = ["build", "finder", "unit"]
