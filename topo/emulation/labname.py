"""The name of a lab. Labs of different names live beside each other on one machine.

A name decides where a lab's files are (`/run/mrclab.NAME`) and what its network namespaces are called (`NAME.h0`); the
default lab's are `/run/mrclab` and `h0`. All else that labs could fight over is apart by itself: links are made inside
namespaces, switch processes take free ports, and processes carry their own lab's token.
"""

import argparse
import os
import re
from dataclasses import dataclass
from pathlib import Path

from topo.node import Node

__all__ = ["DEFAULT_LAB", "LabName", "add_option", "chosen", "named"]

DEFAULT = "default"
VARIABLE = "MRCLAB_NAME"
RULE = (
    "a lab's name has 1 to 16 lower-case letters, digits and hyphens and begins with a letter, such as blue or team-3"
)

_RUN = Path("/run")
_PREFIX = "mrclab"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,15}")


@dataclass(frozen=True, slots=True, order=True)
class LabName:
    """A valid name; ValueError, with the rule, for any other text."""

    text: str = DEFAULT

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.text):
            raise ValueError(f"{self.text!r} is no lab's name: {RULE}")

    @property
    def root(self) -> Path:
        """The directory of the lab's files."""
        return _RUN / (_PREFIX if self.text == DEFAULT else f"{_PREFIX}.{self.text}")

    def netns(self, node: Node) -> str:
        """The name of a node's network namespace. No lab's name has a dot, so two labs never share one."""
        return node.name if self.text == DEFAULT else f"{self.text}.{node.name}"

    def describe(self) -> str:
        """How messages call the lab."""
        return "the lab" if self.text == DEFAULT else f"lab {self.text!r}"

    def option(self) -> str:
        """What a command line needs to mean this lab."""
        return "" if self.text == DEFAULT else f" --name {self.text}"

    def __str__(self) -> str:
        return self.text


DEFAULT_LAB = LabName()


def chosen() -> LabName:
    """The lab of `--name` or MRCLAB_NAME, else the default one. ValueError, with the rule, for a name that is none."""
    try:
        return LabName(os.environ.get(VARIABLE) or DEFAULT)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}: {error}") from None


def named() -> list[LabName]:
    """Names of the labs that have files on this machine, whatever their state."""
    labs = []
    for path in _RUN.glob(f"{_PREFIX}*"):
        _, dot, text = path.name.partition(".")
        if path.is_dir() and (path.name == _PREFIX or (dot and _NAME.fullmatch(text) and text != DEFAULT)):
            labs.append(LabName(text or DEFAULT))
    return sorted(labs)


def _choose(text: str) -> str:
    """Put a name into the environment, where `chosen` and every process that this one starts find it."""
    try:
        os.environ[VARIABLE] = LabName(text).text
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def add_option(parser: argparse.ArgumentParser) -> None:
    """`--name`, for a word that touches a lab."""
    parser.add_argument(
        "--name",
        type=_choose,
        default=argparse.SUPPRESS,
        metavar="LAB",
        help=f"the lab of this name, beside others ({VARIABLE}; {DEFAULT})",
    )
