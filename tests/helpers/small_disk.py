"""A disk of a few hundred kilobytes that a test fills and frees (root)."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """`path` is its folder."""

    path: Path

    @property
    def _rest(self) -> Path:
        return self.path / ".rest"

    def fill(self) -> None:
        """Take all room that is left: not a byte more can be written."""
        with self._rest.open("ab", buffering=0) as rest:
            for size in (1 << 16, 1 << 12, 1):
                with suppress(OSError):
                    while rest.write(b"\0" * size) == size:
                        pass

    def free(self) -> None:
        """Give the room back."""
        self._rest.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[SmallDisk]:
    """A new disk in a folder that is made for it."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        with suppress(OSError):
            subprocess.run(["umount", "--lazy", str(folder)], check=False)
