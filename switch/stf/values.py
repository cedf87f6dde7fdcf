"""Values and matches as they are written: numbers, addresses, prefixes, masks, ranges and `*`."""

from __future__ import annotations

import ipaddress
import re

from p4c.entries import Exact, Lpm, Match, Range, Ternary
from p4c.model.pipelines import Key
from switch.stf.statements import StfError

_BITS_OF_A_DIGIT = {"x": 4, "b": 1, "o": 3}


def number(text: str, width_bits: int) -> int:
    """A decimal, 0x, 0o or 0b number, an IPv6, IPv4 or MAC address, or true and false; it must fit."""
    value = _number(text, width_bits)
    if not 0 <= value < 1 << width_bits:
        raise StfError(f"{text} does not fit {width_bits} bits")
    return value


def _number(text: str, width_bits: int) -> int:
    if text in ("true", "false"):
        return int(text == "true")
    if re.fullmatch(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", text):
        return int(text.replace(":", ""), 16)
    try:
        if ":" in text:
            return int(ipaddress.IPv6Address(text))
        if "." in text:
            return int(ipaddress.IPv4Address(text))
        return int(text, 10) if re.fullmatch(r"\d+", text) else int(text, 0)
    except ValueError:
        raise StfError(f"{text!r} is not a number of {width_bits} bits, or an address") from None


def match(text: str | None, key: Key) -> Match:
    """A match for a field; without text, a match that fits anything."""
    width = key.width_bits
    full = (1 << width) - 1
    if text is None or text in ("*", "_"):
        if key.match == "exact":
            raise StfError(f"the field {key.name} needs a value: its match is exact")
        if key.match == "lpm":
            return Lpm(0, 0)
        return Ternary(0, 0) if key.match == "ternary" else Range(0, full)
    if key.match == "exact":
        return Exact(number(text, width))
    if key.match == "range":
        low, separator, high = re.sub(r"->", "..", text).partition("..")
        return Range(number(low, width), number(high if separator else low, width))
    value, mask = _masked(text, width)
    if key.match == "ternary":
        return Ternary(value & mask, mask)
    length = mask.bit_count()
    if mask != full ^ ((1 << (width - length)) - 1):
        raise StfError(f"the mask of {text} is not a prefix, as the field {key.name} needs")
    return Lpm(value & mask, length)


def _masked(text: str, width: int) -> tuple[int, int]:
    full = (1 << width) - 1
    if "&&&" in text:
        value, _, mask = text.partition("&&&")
        return number(value, width), number(mask, width)
    if "/" in text:
        value, _, length = text.partition("/")
        bits = int(length)
        if not 0 <= bits <= width:
            raise StfError(f"a prefix length is 0 to {width}, not {bits}")
        return number(value, width), full ^ ((1 << (width - bits)) - 1)
    if "*" in text and text[:1] == "0" and text[1:2].lower() in _BITS_OF_A_DIGIT:
        size = _BITS_OF_A_DIGIT[text[1].lower()]
        ones = "0123456789abcdef"[(1 << size) - 1]
        prefix, digits = text[:2], text[2:]
        mask_digits = re.sub(r"[^*]", ones, digits).replace("*", "0")
        return number(prefix + digits.replace("*", "0"), width), number(prefix + mask_digits, width) & full
    return number(text, width), full
