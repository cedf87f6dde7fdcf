"""Types that a controller writes otherwise than the data plane has them (specification, "User-defined types").

`@p4runtime_translation(uri, bit<W>)` gives a type another width for controllers, and with `string` names. The
specification leaves the translation to the switch: this one keeps numbers as they are. The number of a name is that of
`@p4runtime_translation_mappings`, else the decimal number in the name, else the lowest number from 1 without a name.
A name keeps its number until another pipeline is loaded.
"""

import re
from typing import Any

from switch.p4rt.bytestring import decode, encode
from switch.p4rt.errors import exhausted, invalid

NAME_BYTES_MAX = 256
_NAMES_MAX = 1 << 16  # of a type
_MAPPING = re.compile(r'\{\s*"((?:[^"\\]|\\.)*)"\s*,\s*(\d+)\s*,?\s*\}')
_DECIMAL = re.compile(rb"0|[1-9][0-9]{0,39}")


class Translation:
    """One type of one pipeline. `bits` is the width in the data plane, once the program is known."""

    def __init__(self, name: str, spec: Any) -> None:
        self.name = name
        self.bits = 0
        self.strings = spec.translated_type.HasField("sdn_string")
        self._numbers: dict[bytes, int] = {}
        self._names: dict[int, bytes] = {}
        self._next = 1
        for text in spec.annotations:
            if text.startswith("@p4runtime_translation_mappings"):
                for word, number in _MAPPING.findall(text):
                    self._keep(re.sub(r"\\(.)", r"\1", word).encode(), int(number))

    def number(self, value: bytes, what: str) -> int:
        """The number in the data plane for a controller's value. Raises P4RuntimeError naming `what`."""
        if not self.strings:
            return decode(value, self.bits, what)
        known = self._numbers.get(value)
        return self._named(value, what) if known is None else known

    def value(self, number: int) -> bytes:
        """The value that a controller gets for a number."""
        if not self.strings:
            return encode(number)
        name = self._names.get(number)
        if name is None:
            name = str(number).encode()
            while name in self._numbers:
                name = b"#" + name
            if len(self._names) < _NAMES_MAX:
                self._keep(name, number)
        return name

    def _keep(self, name: bytes, number: int) -> None:
        self._names[number] = name
        self._numbers[name] = number

    def _named(self, name: bytes, what: str) -> int:
        if len(name) > NAME_BYTES_MAX:
            raise invalid(f"{what}: a name of type {self.name} must have at most {NAME_BYTES_MAX} bytes")
        number = int(name) if _DECIMAL.fullmatch(name) else -1
        if number < 0 or number >> self.bits or number in self._names:
            while self._next in self._names:
                self._next += 1
            number = self._next
        if number >> self.bits or len(self._names) >= _NAMES_MAX:
            most = min(_NAMES_MAX, 1 << self.bits)
            raise exhausted(f"{what}: type {self.name} has {most} names already, until another pipeline is loaded")
        self._keep(name, number)
        return number
