"""TOML that a user gives: limits of size and of a key's parts, and errors that name the file."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from common import plain_file

BYTES_MAX = 4 << 20
DOTS_MAX = 16
"""In a line, beside those of numbers and IPv4 addresses: the parser's memory grows with the square of a key's parts."""
_NUMBER = re.compile(r"(?<![\w.-])\d+(\.\d+){1,3}(?![\w.-])")


def parse(text: str, source: str, error: type[Exception]) -> dict[str, Any]:
    """The document of a text. Raises `error`, which begins with `source` and says what is wrong."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > DOTS_MAX and (dots := _NUMBER.sub("", line).count(".")) > DOTS_MAX:
            raise error(f"{source}: line {number} must have at most {DOTS_MAX} dots beside numbers (got {dots})")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as why:
        raise error(f"{source}: must be TOML ({plain_file.what(why)})") from why
