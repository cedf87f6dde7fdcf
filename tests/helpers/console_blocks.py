"""Console blocks of the pages: their commands, and the lines of output that the pages show.

A fenced block whose info string begins with `console` holds commands behind `$ `; its other lines are output. A `text`
block right behind it holds more lines of the output. Lines may be left out, but not change their order. A block of
another language whose info string names a file is that file, which the reader writes before the next commands.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = ("docs/**/*.md", "*/README.md", "*/*/README.md", "packages/*/**/README.md")
PAGES = [ROOT / "README.md", *sorted({page for place in PLACES for page in ROOT.glob(place)})]
FENCE = re.compile(r"^```(\w*)(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    section: str  # the heading above
    words: frozenset[str]
    commands: tuple[str, ...]
    shown: tuple[str, ...]  # lines of the output that the page shows
    files: tuple[tuple[str, str], ...] = ()  # names and texts of files above

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def place(self) -> str:
        """Names the block's section in a way that edits elsewhere on the page do not change."""
        return f"{self.page.relative_to(ROOT)} {self.section}"


def blocks(pages: Sequence[Path] = tuple(PAGES)) -> Iterator[Block]:
    """All console blocks in their order."""
    for page in pages:
        text = page.read_text()
        fences = list(FENCE.finditer(text))
        files: list[tuple[str, str]] = []
        prose = FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        for found, following in zip_longest(fences, fences[1:]):
            if found[1] != "console":
                files += [(name, found[3]) for name in found[2].split() if "/" in name]
                continue
            lines = found[3].splitlines()
            output = [line for line in lines if not line.startswith("$ ")]
            if following and following[1] == "text" and not text[found.end() : following.start()].strip():
                output += following[3].splitlines()
            yield Block(
                page=page,
                line=text.count("\n", 0, found.start()) + 1,
                section=HEADING.findall(prose[: found.start()])[-1],
                words=frozenset(found[2].split()),
                commands=tuple(line[2:] for line in lines if line.startswith("$ ")),
                shown=tuple(line for line in map(squeezed, output) if line not in ("", "…")),
                files=tuple(files),
            )


def squeezed(line: str) -> str:
    """Without the spaces that set columns: a table is as wide as its widest line, which a page may leave out."""
    return " ".join(line.split())


def missing(shown: tuple[str, ...], printed: str) -> str | None:
    """The first line that is shown and not printed behind those before it. "…" stands for any text."""
    lines = iter([squeezed(line) for line in printed.splitlines()])
    return next((wanted for wanted in shown if not any(shows(wanted, line) for line in lines)), None)


def shows(wanted: str, line: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, wanted.split("…"))), line) is not None


def printed_by(block: Block, folder: Path, limit_s: float) -> str:
    """Run the block's commands in `folder`, check each exit status, and return what they printed."""
    shell = shutil.which("bash") or "/bin/sh"
    printed = ""
    for name, text in block.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for command in block.commands:
        done = subprocess.run(
            [shell, "-c", command], cwd=folder, capture_output=True, text=True, timeout=limit_s,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        wanted = int("nonzero" in block.words or command.endswith("# exits with 1"))
        assert done.returncode == wanted, f"{block.name}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        printed += done.stdout
    return printed
