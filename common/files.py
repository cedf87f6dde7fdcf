"""Files that are replaced whole: a reader finds the old content or the new one, also after a kill."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from common import cache


def write(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Replace the file at once; text is UTF-8. Whatever is raised meanwhile leaves the file as it was."""
    if isinstance(content, str):
        content = content.encode()
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            os.fchmod(file.fileno(), 0o644)
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Replace a JSON file at once."""
    write(path, json.dumps(value, indent=1) + "\n")


def cache_directory() -> Path:
    """The folder of the user's cache of this program: `$XDG_CACHE_HOME/mrclab`, or `~/.cache/mrclab`."""
    return Path(cache.directory())
