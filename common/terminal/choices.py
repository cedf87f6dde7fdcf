"""The complaint about a word that is none of the known ones, with the nearest of them."""

from collections.abc import Iterable

__all__ = ["close", "no_such"]


def close(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; "" when none is like it."""
    import difflib  # late: few words are wrong

    matches = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return matches[0] if matches else ""


def no_such(what: str, word: str, known: Iterable[str]) -> str:
    """A complaint with the choices, such as `no colour 'bleu' (did you mean blue?): valid are red, blue`."""
    choices = list(known)
    meant = close(word, choices)
    return f"no {what} {word!r}{f' (did you mean {meant}?)' if meant else ''}: valid are {', '.join(choices)}"
