"""The files of a clone that git tracks, or would track."""

import subprocess
from pathlib import Path


def files_of(root: Path) -> list[Path]:
    """Existing files, sorted, without those that git ignores: built, downloaded, or results of runs."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted(path for line in listed.splitlines() if (path := root / line).is_file())
