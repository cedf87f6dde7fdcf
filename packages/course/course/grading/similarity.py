"""Submissions that share code: fingerprints of k tokens, without those of the starter.

Winnowing (S. Schleimer and others, SIGMOD 2003): of every window of hashes the smallest is kept, so any run
of tokens longer than a window leaves a trace. Names, numbers and texts of a program's own count as one kind of token
each: renaming hides nothing. It finds candidates for a talk, and proves nothing.
"""

import hashlib
import keyword
import re
from collections.abc import Mapping
from itertools import combinations

TOKENS, WINDOW = 8, 4
COMMENTS = {".py": r"#[^\n]*|\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'", ".p4": r"//[^\n]*|/\*.*?(?:\*/|\Z)"}
"""By the suffix of a file; long texts of Python are comments as well."""
REST = r"(?P<text>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')|[A-Za-z_]\w*|\d[\w.]*|\S"
TOKEN = {suffix: re.compile(f"(?P<comment>{comment})|{REST}", re.DOTALL) for suffix, comment in COMMENTS.items()}
WORDS = {*keyword.kwlist, "self", "action", "table", "key", "apply", "control", "bit", "register"}


def tokens(text: str, suffix: str) -> list[str]:
    """The tokens of a file of this suffix, without comments; names that it chose itself are all alike."""
    sequence = []
    for match in TOKEN[suffix].finditer(text):
        token = match.group()
        if match.lastgroup == "comment":
            continue
        if match.lastgroup == "text":
            token = "text"
        elif token[0].isdigit():
            token = "number"
        elif (token[0].isalpha() or token[0] == "_") and token not in WORDS:
            token = "name"
        sequence.append(token)
    return sequence


def fingerprints(text: str, suffix: str) -> set[int]:
    """The kept hashes of a text."""
    sequence = tokens(text, suffix)
    grams = [" ".join(sequence[at : at + TOKENS]) for at in range(len(sequence) - TOKENS + 1)]
    hashes = [int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "big") for gram in grams]
    if len(hashes) < WINDOW:
        return set(hashes)
    return {min(hashes[at : at + WINDOW]) for at in range(len(hashes) - WINDOW + 1)}


def similar(texts: Mapping[str, str], starter: str, suffix: str) -> list[tuple[float, str, str]]:
    """Pairs by the share of fingerprints that they have in common, largest first; texts with nothing new have none."""
    common = fingerprints(starter, suffix)
    prints = {name: fingerprints(text, suffix) - common for name, text in texts.items()}
    pairs = []
    for first, other in combinations(sorted(prints), 2):
        union = prints[first] | prints[other]
        if union and prints[first] and prints[other]:
            pairs.append((len(prints[first] & prints[other]) / len(union), first, other))
    return sorted(pairs, key=lambda pair: (-pair[0], pair[1:]))
