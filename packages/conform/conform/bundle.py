"""The evidence of a run: a folder with `bundle.json`, `results.txt` and captures, each with its SHA-256.

`verify` compares the digests and judges the rules again that are judged from captures: by the function `again` of
`conform.KIND.again`, which gets the manifest and the files and returns results. A bundle may also be a zip file of the
folder's files.
"""

from __future__ import annotations

import hashlib
import io
import platform
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from common import files, plain_file
from conform.result import BROKEN, Result, summary
from conform.rule import Rule

MANIFEST, RESULTS = "bundle.json", "results.txt"
FORMAT = 1
KINDS = ("nic", "switch", "library")
FILES_MAX, BYTES_MAX = 10_000, 256 << 20


class BundleError(ValueError):
    """The folder or zip is no bundle."""


@dataclass(slots=True)
class Bundle:
    """A bundle in the making. `about` is what the kind wants to know again when it verifies."""

    kind: str
    command: Sequence[str]
    about: dict[str, Any]
    results: list[Result] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)

    def add(self, result: Result, captures: Mapping[str, bytes]) -> None:
        """A result with its captures, by file name."""
        result.captures += captures
        self.results.append(result)
        self.contents |= captures

    def write(self, folder: Path, rules: Sequence[Rule]) -> None:
        """Write all of it. The folder is made; files of an older bundle there are replaced."""
        files.make_folder(folder)
        lines = [one.line() for one in self.results] + ["", summary(self.results)]
        self.contents[RESULTS] = ("\n".join(lines) + "\n").encode()
        manifest = {
            "format": FORMAT,
            "kind": self.kind,
            "command": shlex.join(self.command),
            "versions": versions(),
            "about": self.about,
            "rules": {rule.id: rule.rule for rule in rules},
            "results": [one.as_dict() for one in self.results],
            "digests": {name: digest(data) for name, data in sorted(self.contents.items())},
        }
        for name, data in self.contents.items():
            files.write(folder / name, data)
        files.write_json(folder / MANIFEST, manifest)


def versions() -> dict[str, str]:
    """The versions with which the run was made."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    for name in ("mrclab", "mrclab-conform"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    found["rules"] = digest(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("rules/*.toml"))))
    return found


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(place: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest of a bundle and its files. Raises `BundleError`."""
    if place.is_dir():
        manifest = plain_file.read_object(place / MANIFEST)
        names = [str(name) for name in manifest.get("digests", {})]
        held = {name: plain_file.read_bytes(place / name) for name in names if named(name) and (place / name).exists()}
    else:
        held = zipped(place)
        if MANIFEST not in held:
            raise BundleError(f"{place} must be a bundle, with {MANIFEST}")
        manifest = plain_file.parse_json(held.pop(MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{place} must be a bundle of format {FORMAT}")
    return manifest, held


def named(name: str) -> bool:
    """Whether this is the name of a file in the folder itself."""
    return name == Path(name).name and name not in ("", ".", "..")


def zipped(place: Path) -> dict[str, bytes]:
    """The files of a zip, within a bound."""
    try:
        with zipfile.ZipFile(io.BytesIO(plain_file.read_up_to(place, BYTES_MAX))) as archive:
            entries = archive.infolist()
            if len(entries) > FILES_MAX or sum(one.file_size for one in entries) > BYTES_MAX:
                raise BundleError(f"{place} must have at most {FILES_MAX} files of {BYTES_MAX} bytes together")
            return {Path(one.filename).name: archive.read(one) for one in entries if not one.is_dir()}
    except zipfile.BadZipFile as error:
        raise BundleError(f"{place} must be a folder or a zip: {error}") from None


def verify(place: Path) -> tuple[list[str], list[Result]]:
    """The faults of a bundle, and the results of the rules that were judged again."""
    manifest, held = read(place)
    told: Mapping[str, str] = manifest.get("digests", {})
    wrong = [f"{name}: missing" for name in told if name not in held]
    wrong += [f"{name}: not the file of the run" for name, data in held.items() if told.get(name) != digest(data)]
    results: list[Result] = []
    kind = str(manifest.get("kind"))
    if kind in KINDS and not wrong and (Path(__file__).with_name(kind) / "again.py").is_file():
        results = import_module(f"conform.{kind}.again").again(manifest, held)
    before = {one["rule"]: one["outcome"] for one in manifest.get("results", [])}
    wrong += [
        f"{one.rule}: {one.outcome} now, {before.get(one.rule)} in the bundle"
        for one in results
        if one.outcome != before.get(one.rule) and {one.outcome, before.get(one.rule)} != set(BROKEN)
    ]
    return wrong, results
