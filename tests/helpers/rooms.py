"""Where the rooms of the product are: top-level folders, and those of the same kind in `packages/`."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
NO_ROOMS = ("tests", "benchmarks", "docs", "locks", ".ci")


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
