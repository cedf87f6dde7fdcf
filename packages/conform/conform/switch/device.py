"""What a person says of a switch under test: a small file, or the rig that started one of the lab's own."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from common import fields, plain_file
from common.outcome import error_line
from common.records import Frozen

COMMAND_S = 300
"""For which a command of the device's file may run: a switch restarts in minutes."""
FILE_BYTES_MAX = 64 << 10


class DeviceError(Exception):
    """The device's file breaks a rule, or one of its commands failed; the message says which."""


class DeviceFile(Frozen):
    """The table `[switch]` of a device's file; the page on conformance says what the keys mean."""

    name: str
    adjacencies: bool = True
    answers: bool = True
    marks: bool = True
    trims: bool = True
    rate_bps: int = 0
    patience_s: float = 5.0
    p4runtime: str = ""
    device_id: int = 1
    restart: str = ""
    unknown_drops: str = ""


class SwitchDevice:
    """A switch as tests see it. Where `restart` or `unknown_drops` is None, a rule is not reachable."""

    def __init__(
        self,
        about: DeviceFile,
        restart: Callable[[], object] | None = None,
        unknown_drops: Callable[[], int] | None = None,
    ) -> None:
        """Without functions, by the commands of the device's file."""
        self.about = about
        self.restart = restart or (partial(_said, about.restart) if about.restart else None)
        self.unknown_drops = unknown_drops or (partial(_number, about.unknown_drops) if about.unknown_drops else None)


def read_device(path: Path) -> SwitchDevice:
    """A device from its file. DeviceError."""
    try:
        text = plain_file.read_named(path, FILE_BYTES_MAX)
    except (OSError, UnicodeDecodeError) as error:
        raise DeviceError(f"{path}: {plain_file.text_fault(error)}") from error
    document = fields.Fields("", fields.parse_toml(text, str(path), DeviceError), DeviceError, ["switch"])
    return SwitchDevice(fields.read(DeviceFile, document.get("switch"), DeviceError, "switch"))


def _said(command: str) -> str:
    """What a command of the device's file prints. DeviceError when it fails."""
    try:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False, timeout=COMMAND_S)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise DeviceError(f"the command {command!r} of the device's file: {error_line(error)}") from error
    if done.returncode:
        raise DeviceError(
            f"the command {command!r} of the device's file ended with {done.returncode}: {done.stderr[-300:]}"
        )
    return done.stdout


def _number(command: str) -> int:
    text = _said(command).strip()
    if not text.isdecimal():
        raise DeviceError(f"the command {command!r} of the device's file must print a number (got {text[:80]!r})")
    return int(text)
