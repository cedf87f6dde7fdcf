"""Exact numbers in C: the text of a value with the interval that it lies in, and the narrowest type that holds it."""

from dataclasses import dataclass

from switch.native.emit.layout import WIDEST_BITS

U64_MAX = (1 << 64) - 1
U128_MAX = (1 << 128) - 1
I128_MIN, I128_MAX = -(1 << 127), (1 << 127) - 1
SHIFT_LIMIT = 4096  # shifting left by so much or more gives 0, in both engines


@dataclass(frozen=True, slots=True)
class Value:
    """C text of type u64, u128 or i128 and the interval that its exact value lies in."""

    text: str
    low: int
    high: int

    @property
    def type(self) -> str:
        if self.low >= 0:
            return "u64" if self.high <= U64_MAX else "u128"
        return "i128"

    def as_type(self, kind: str) -> str:
        return self.text if kind == self.type else f"({kind})({self.text})"


def fits(low: int, high: int) -> bool:
    return (low >= 0 and high <= U128_MAX) or (low >= I128_MIN and high <= I128_MAX)


def constant(value: int) -> str:
    """A C constant of the type that `Value` gives it: 64 bits at least."""
    if value < 0:
        return f"(-(i128){constant(-value)})"
    if value <= U64_MAX:
        return f"{value}ull" if value < 10 else f"0x{value:x}ull"
    return f"((u128)0x{value >> 64:x}ull << 64 | 0x{value & U64_MAX:x}ull)"


def wide_constant(value: int, width_bits: int) -> str:
    data = value.to_bytes(width_bits // 8, "big")
    return "((const u8[]){" + ", ".join(str(byte) for byte in data) + "})"


def magnitude_bits(*values: Value) -> int:
    """How many bits hold any of the values beside a sign bit."""
    return max((~end if end < 0 else end).bit_length() for v in values for end in (v.low, v.high))


def interval(op: str, left: Value, right: Value) -> tuple[int, int] | None:
    """Where the exact result lies; None when that is unbounded or not known."""
    corners = [(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    match op:
        case "+":
            return left.low + right.low, left.high + right.high
        case "-":
            return left.low - right.high, left.high - right.low
        case "*":
            products = [a * b for a, b in corners]
            return min(products), max(products)
        case "|" | "^":
            bits = magnitude_bits(left, right)
            if left.low >= 0 and right.low >= 0:
                return 0, (1 << bits) - 1
            return -(1 << bits), (1 << bits) - 1
        case "<<":
            if right.low < 0 or right.high > WIDEST_BITS:
                return None
            shifted = [a << b for a, b in corners]
            return min(shifted), max(shifted)
        case ">>":
            if right.low < 0:
                return None
            shifted = [a >> min(b, SHIFT_LIMIT) for a, b in corners]
            return min(shifted), max(shifted)
        case "/":
            return (0, left.high) if left.low >= 0 and right.low >= 0 else None
        case "%":
            return (0, min(left.high, max(right.high - 1, 0))) if left.low >= 0 and right.low >= 0 else None
    return None
