"""The sentence that begins pages whose numbers do not count."""

from __future__ import annotations

SHORT = (
    "This is the short form (`--short`): its runs last seconds and only show that everything works."
    " No number of these runs counts."
)


def plain(text: str) -> str:
    """The sentence for a terminal or for HTML, without Markdown's marks."""
    return text.replace("`", "")
