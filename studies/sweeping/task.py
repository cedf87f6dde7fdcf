"""One run to be made: its JSON, and the key under which its row is kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from running import identity
from studies.farm.engine import Job

JUDGING = ("judging", "studies/sweeping/metric.py", "studies/sweeping/row.py")


class VersionError(RuntimeError):
    """A worker has other code, or another plan or scenario file, than who asked it for a run."""


@dataclass(frozen=True, slots=True)
class Task(Job):
    """`hashes` say what the key was made from. A run that is kept has a report."""

    hashes: Mapping[str, str]


def hashes_of(options: Mapping[str, Any]) -> dict[str, str]:
    """The inputs of a row beside the choices: the digests of a run, and those of the code that judges it."""
    return {**options["hashes"], "judging": identity.code_digest(JUDGING), "version": options["version"]}


def key_of(options: Mapping[str, Any], seed: int) -> str:
    """The key of a row: that of the run, and the digests of the code that judges."""
    document = {"run": identity.key({**options, "seed": seed}), **hashes_of(options)}
    return identity.digest(json.dumps(document, sort_keys=True).encode())


def checked(task: Task, options: Mapping[str, Any]) -> None:
    """VersionError unless a run with these options is the one that was asked for."""
    if key_of(options, task.seed) == task.key:
        return
    own = hashes_of(options)
    differ = [name for name in own if own[name] != task.hashes.get(name)] or ["the choices"]
    raise VersionError(
        f"this process would make another run than the one that was asked for: {', '.join(differ)} differ;"
        " workers need the same version of mrclab and the same files"
    )
