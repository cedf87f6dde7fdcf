"""P4 text in which a few words or parts have changed."""

from __future__ import annotations

import random
import re

PARTS = re.compile(r"\s+|\w+|[^\s\w]")


def mutated(rng: random.Random, text: str) -> str:
    """One or two words put where other words stand, or up to three parts deleted, doubled or exchanged."""
    parts = PARTS.findall(text)
    words = [i for i, part in enumerate(parts) if re.match(r"\w", part)]
    if rng.random() < 0.7:
        for _ in range(rng.randint(1, 2)):
            parts[rng.choice(words)] = parts[rng.choice(words)]
        return "".join(parts)
    for _ in range(rng.randint(1, 3)):
        i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
        change = rng.randrange(3)
        if change == 0:
            del parts[i]
        elif change == 1:
            parts.insert(i, parts[j])
        else:
            parts[i], parts[j] = parts[j], parts[i]
    return "".join(parts)
