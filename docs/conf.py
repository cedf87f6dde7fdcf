"""The pages as a site: `python -m sphinx docs dist/site`, with the packages that CONTRIBUTING.md names.

Pages stay plain Markdown: the site's contents are the tables of README.md, and the name of a page in backquotes becomes
a link to it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_PROJECT = tomllib.loads((_HERE.parent / "pyproject.toml").read_text())["project"]

project = "mrclab"
release = version = _PROJECT["version"]
extensions = ["myst_parser"]
root_doc = "README"
source_suffix = {".md": "markdown"}
suppress_warnings = ["misc.highlighting_failure"]  # P4 is coloured as C, which it nearly is
myst_heading_anchors = 4  # links to headings, as GitHub has them
# Sphinx is the best kept generator, reads Markdown by MyST, and has search built in.
html_theme = "furo"  # light and dark, as the reader's system asks
html_title = f"mrclab {release}"
html_extra_path = ["grafana.json"]


def _contents(readme: str) -> str:
    """A table of contents for each heading of README.md, of the pages that its table names, and of its folders."""
    trees = []
    for heading, table in re.findall(r"^## (.+)\n((?:\|.*\n)+)", readme, re.MULTILINE):
        cells = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)
        names = re.findall(r"`([\w/-]+(?:\.md|/))`", " ".join(cells))
        pages = [page for name in names for page in _pages(name)]
        trees.append("\n".join([f"```{{toctree}}\n:hidden:\n:caption: {heading}\n", *dict.fromkeys(pages), "```\n"]))
    return "\n".join(trees)


def _pages(name: str) -> list[str]:
    files = sorted((_HERE / name).glob("*.md")) if name.endswith("/") else [_HERE / name]
    return [str(file.relative_to(_HERE).with_suffix("")) for file in files]


def _read(app: Any, name: str, source: list[str]) -> None:
    def link(match: re.Match[str]) -> str:
        named = match[1].removeprefix("docs/")
        for page in (named, f"{Path(name).parent}/{named}"):
            if (_HERE / page).is_file() and Path(page) != Path(f"{name}.md"):
                return f"[{match[0]}](/{page})"
        return match[0]

    more = _contents(source[0]) if name == root_doc else ""
    source[0] = re.sub(r"(?<!\[)`([\w/-]+\.md)`(?!\])", link, source[0]) + "\n" + more


def setup(app: Any) -> None:
    app.connect("source-read", _read)
