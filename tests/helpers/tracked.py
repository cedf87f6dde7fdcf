"""The files of a clone that git tracks or would track, and the rooms of the product that they are in."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_ROOMS = ("tests", "benchmarks", "docs", "locks", ".ci")


def files_of(root: Path) -> list[Path]:
    """Existing files, sorted, without those that git ignores: built, downloaded, or results of runs."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted(path for line in listed.splitlines() if (path := root / line).is_file())


def room_of(file: Path) -> str:
    """The room of a file below the clone, by its import name; a file of a package that is in none has the package's."""
    parts = file.parts
    return parts[min(2, len(parts) - 2)] if parts[0] == "packages" and len(parts) > 2 else parts[0]


def rooms() -> list[Path]:
    """The folder of each room, those of packages included."""
    found = [*ROOT.glob("*/__init__.py"), *ROOT.glob("packages/*/*/__init__.py")]
    return [file.parent for file in found if file.parent.name not in NO_ROOMS]


def python_files() -> list[Path]:
    """Every module of every room."""
    return [file for room in rooms() for file in room.rglob("*.py")]
