"""Which published figures are older than the code that decides them: docs/results/records.json, and a line of the page.

python -m tests.helpers.records             # mark the records whose code has moved since
python -m tests.helpers.records NAME ...    # these files were made just now, by the code as it is
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from running.identity import CODE, ROOT, code_digest

RESULTS = ROOT / "docs" / "results"
FILE, PAGE = RESULTS / "records.json", ROOT / "docs" / "results.md"
FOLDERS = (RESULTS, ROOT / "docs" / "reproduction")
RUNS = tuple(place for places in CODE.values() for place in places)
DECIDING: dict[str, tuple[str, ...]] = {
    "runs": RUNS,
    "the paper's figures": (*RUNS, "paper"),
    "the endpoint": ("endpoint", "mrclab"),
    "the switch": ("switch", "p4c"),
    "all code": (*RUNS, "mrclab", "judging", "cli", "studies", "page"),
}
"""The code that decides a file, by the word that its record has. The P4 programs count always."""
Record = dict[str, Any]


def records() -> dict[str, Record]:
    """By the file's path below docs/: when and from what it was made, and whether the code has moved since."""
    return dict(json.loads(FILE.read_text()))


def files() -> list[str]:
    """The files of figures, by their paths below docs/."""
    every = (path for folder in FOLDERS for path in folder.iterdir() if path != FILE and path.suffix != ".md")
    return sorted(str(path.relative_to(ROOT / "docs")) for path in every)


def digest(deciding: str) -> str:
    """Of the code as it is now."""
    programs = b"".join(path.read_bytes() for path in sorted((ROOT / "p4").rglob("*.p4")))
    return hashlib.sha256(code_digest(DECIDING[deciding]).encode() + programs).hexdigest()[:16]


def stale(told: Mapping[str, Record]) -> list[str]:
    """Files whose record says that the code is the same, and it is not."""
    return [name for name, record in told.items() if not record["moved"] and record["digest"] != digest(record["code"])]


def sentence(told: Mapping[str, Record]) -> str:
    """The page's line."""
    current = sorted(name for name, record in told.items() if not record["moved"])
    names = ": " + ", ".join(f"`{name}`" for name in current) if current else ""
    return f"Of these {len(told)} files, {len(current)} were made by today's code{names}."


def main(made: list[str]) -> None:
    told = records()
    before = sentence(told)
    for name in stale(told):
        told[name]["moved"] = True
    for name in made:
        words = ["git", "rev-parse", "--short", "HEAD"]
        revision = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        code = told[name]["code"]
        today = datetime.now(UTC).date().isoformat()
        told[name] = {"made": today, "revision": revision, "code": code, "digest": digest(code), "moved": False}
    FILE.write_text(json.dumps(told, indent=1) + "\n")
    text = PAGE.read_text()
    assert before in text, f"{PAGE} must have the line {before!r}"
    PAGE.write_text(text.replace(before, sentence(told)))


if __name__ == "__main__":
    main(sys.argv[1:])
