"""Names of hostile users, and what shows that a text of theirs stays a value: in Python, in a shell, in HTML."""

import ast
import os
import subprocess
from html.parser import HTMLParser

from hypothesis import strategies as st

PARTS = (
    "'", '"', '"""', "'''", "\\", "\\u", "\\N{", "$(id)", "`id`", "${HOME}", "$'", ";", "|", "&", "!", "#", "~", "-",
    "\n", "\r", "\t", "\x0c", "\x1b[31m", "\x1b]0;t\x07", "\x85", "\u2028", "\u202e", "\xa0", "\udcff", "\U0001f600",
    "coding: utf-7", "{path}", "{0}", "%s", " ", "é", "a", "</script>", "<b>", "&lt;", "]]>", "-->", "import os",
)  # fmt: skip
HARMLESS = "name"
texts = (
    st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=4)), min_size=1, max_size=12).map("".join).filter(bool)
)
"""Any text, mostly of parts that mean something to a shell, to Python, to a page or to a terminal."""


def _component(text: str) -> str:
    """A text as the name of a file: without slashes, at most 255 bytes."""
    kept = os.fsencode("".join(one for one in text if one not in "/\0" and not "\ud800" <= one <= "\udc7f"))
    return os.fsdecode((kept * 40 if text.endswith("a") else kept)[:255])


names = texts.map(_component).filter(lambda name: name not in ("", ".", ".."))
"""Names that a folder may have; some are as long as a name can be."""


def skeleton(source: str) -> str:
    """A program without the values of its constants. Equal skeletons do the same with other values."""
    tree = ast.parse(source.encode())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = type(node.value).__name__
    return ast.dump(tree)


def constants(source: str) -> list[object]:
    """The values in a program."""
    return [node.value for node in ast.walk(ast.parse(source.encode())) if isinstance(node, ast.Constant)]


def words(line: str) -> list[str]:
    """The words that bash makes of a line, when a user copies it. AssertionError for a line that a terminal obeys."""
    assert line.isprintable(), ascii(line)
    script = f"lab() {{ printf '%s\\0' \"$@\"; }}\nset -u +m\nlab {line.removeprefix('./lab ')}"
    done = subprocess.run(
        ["/bin/bash", "-c", script], capture_output=True, check=True, env={"PATH": "/nowhere"}, cwd="/"
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs if name != "class")))


def tags(html: str) -> list[tuple[str, tuple[str, ...]]]:
    """The tags of a page in their order, with the names of their attributes but `class` (of numbers)."""
    parser = _Tags()
    parser.feed(html)
    return parser.found
