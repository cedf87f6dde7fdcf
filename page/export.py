"""A run's replay as one HTML file that opens from disk: the page, its scene and the journal's lines, compressed.

The journal is carried whole, as gzip (RFC 1952) in base64. Modules become data: URLs (RFC 2397) behind an import map:
the same files serve here and on the server.
"""

import base64
import contextlib
import gzip
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import files as whole_files
from judging.reports import report
from page.browser_files import browser_files
from page.feed import PACKETS, Feed, for_browsers
from page.view import replay_view

__all__ = ["beside_report", "write"]

NAME = report.REPLAY
GZIP_LEVEL = 3
"""A third of the time of level 6, for a third more bytes."""
IMPORT = re.compile(r'from "(\.[\w./-]+\.js)"')


def write(runs: Sequence[Path], path: Path) -> int:
    """Write the replay of one run, or of two side by side, to a file that a user has named; returns its bytes.

    ValueError when a run cannot be drawn.
    """
    text = replay(runs)
    whole_files.write_named(path, text)
    return len(text)


def replay(runs: Sequence[Path], texts: Sequence[bytes] = ()) -> bytes:
    """The page with the runs in it. ValueError when a run cannot be drawn. `texts`: of the only run, as in `packed`."""
    told = {**replay_view(runs).document(), "lines": [packed(run, texts) for run in runs]}
    return document(told, {name: content.decode() for name, content in browser_files().items()}).encode()


def beside_report(run: Path, texts: Sequence[bytes] = ()) -> None:
    """The run's replay in its own folder, which the report links to. Nothing where a fabric is too large to be drawn,
    or its plan was not kept, as by earlier releases. `texts` as in `packed`."""
    with contextlib.suppress(ValueError):
        whole_files.write(run / NAME, replay([run], texts))


def packed(run: Path, texts: Sequence[bytes] = ()) -> str:
    """All lines of a run's journal, by time. Whoever has read and checked these lines gives them as `texts`."""
    lines = b"\n".join(texts)
    if not lines or (run / PACKETS).exists() or not for_browsers(lines):
        feed = Feed(run)
        try:
            feed.poll()
            lines = b"\n".join(feed.lines)
        finally:
            feed.close()
    return base64.b64encode(gzip.compress(lines, GZIP_LEVEL, mtime=0)).decode()


def document(told: Mapping[str, object], files: Mapping[str, str]) -> str:
    """The page with everything in it."""
    imports = {f"mrclab/{name}": module(name, text) for name, text in sorted(files.items()) if name.endswith(".js")}
    scripts = [("importmap", json.dumps({"imports": imports})), ("module", 'import "mrclab/main.js";')]
    hashes = " ".join(f"'sha256-{digest(text)}'" for _, text in scripts)
    policy = f"default-src 'none'; script-src data: {hashes}; style-src 'unsafe-inline'; img-src data:"
    carried = json.dumps(told, separators=(",", ":")).replace("<", "\\u003c")
    head = [
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<style>{files['style.css']}</style>",
        f'<script type="application/json" id="carried">{carried}</script>',
        *(f'<script type="{kind}">{text}</script>' for kind, text in scripts),
    ]
    page = files["index.html"]
    page = page.replace('<link rel="stylesheet" href="page/style.css">\n', "")
    return page.replace('<script type="module" src="page/main.js"></script>', "\n".join(head))


def module(name: str, text: str) -> str:
    """A module as a data: URL, whose imports go through the import map. `name` is its path below `browser/`."""
    folder = posixpath.dirname(name)
    own = IMPORT.sub(lambda match: f'from "mrclab/{posixpath.normpath(posixpath.join(folder, match[1]))}"', text)
    return "data:text/javascript;base64," + base64.b64encode(own.encode()).decode()


def digest(text: str) -> str:
    """The hash by which a content policy allows an inline script (CSP 3, section 6.7.2)."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
