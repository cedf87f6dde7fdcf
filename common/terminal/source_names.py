"""Names of an imported fabric in text for people: `p0l0-p0s1` reads `p0-leaf1-p0-spine2`.

Runs, journals and JSON for programs keep the lab's own names. Text takes the names of the plan's source once, where it
leaves the lab: `shown` for a terminal, `shown_on_page` for HTML.
"""

import re
from collections.abc import Mapping
from html import escape

__all__ = ["KEY", "TAGS", "of_options", "shown", "shown_on_page"]

OWN = re.compile(r"(?<![\w./])(p\d+[lsc]\d+|h\d+)(?!\w)( *)")
"""A node's own name that is a word by itself, also as a part of a cable or of a NIC's port, and the spaces after it."""
TAGS = re.compile(r"(<style>.*?</style>|<[^>]*>)", re.DOTALL)
KEY = "names"
"""Of a run's options: the source's names by the lab's."""


def shown(text: str, names: Mapping[str, str]) -> str:
    """Text in which nodes have the names of the source."""

    def replaced(match: re.Match[str]) -> str:
        name, spaces = names.get(match[1], match[1]), len(match[2])
        grown = len(name) - len(match[1])
        return name + " " * max(min(spaces, 2), spaces - grown)  # the next column stays where it is, if it can

    return OWN.sub(replaced, text) if names else text


def shown_on_page(page: str, names: Mapping[str, str]) -> str:
    """HTML in which nodes have the names of the source, wherever a reader sees them."""
    if not names:
        return page
    escaped = {own: escape(name) for own, name in names.items()}
    return "".join(part if part.startswith("<") else shown(part, escaped) for part in TAGS.split(page))


def of_options(options: Mapping[str, object]) -> dict[str, str]:
    """The names in a run's options, which may be another person's; none where there are none."""
    names = options.get(KEY)
    if not isinstance(names, dict):
        return {}
    return {str(own): str(name) for own, name in names.items() if str(name).isprintable()}
