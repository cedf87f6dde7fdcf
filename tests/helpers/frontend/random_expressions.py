"""Random programs of typed expressions: every width, signed and unsigned, mixed by casts, slices and concatenation.

Only what p4c takes too, at the values that matter: no division of what is known at run time only, no operands of `++`
of different sign (p4c 1.2.5 casts them wrongly), no saturation at 128 bits (the native engine refuses it by name).
"""

import random

from tests.helpers.p4.around import EXTRACT, around

WIDTHS = (1, 2, 5, 8, 9, 16, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128)
SATURATED_MAX = 126
INPUTS = 8  # of either sign


def program(inputs: str, outputs: str, body: str) -> str:
    types = f"header in_t {{ {inputs} }}\nheader out_t {{ {outputs} }}"
    return around(types, "in_t i; out_t o;", EXTRACT.format("i"), f"hdr.o.setValid();\n{body}")


def type_name(width: int, signed: bool) -> str:
    return f"{'int' if signed else 'bit'}<{width}>"


class RandomExpressions:
    """`text` is the source; `frames()` are packets whose fields are at the edges of their types, or anything."""

    def __init__(self, seed: int, count: int = 24) -> None:
        self.rng = random.Random(seed)
        rng = self.rng
        fields = [(f"u{i}", rng.choice(WIDTHS), False) for i in range(INPUTS)]
        fields += [(f"i{i}", rng.choice(WIDTHS[1:]), True) for i in range(INPUTS)]
        rng.shuffle(fields)
        self.fields = fields
        self.spare = -sum(width for _, width, _ in fields) % 8
        self.in_bytes = (sum(width for _, width, _ in fields) + self.spare) // 8
        self.lines: list[str] = []
        outputs, bits = [], 0
        for k in range(count):
            signed = rng.random() < 0.4
            width = rng.choice(WIDTHS[1:] if signed else WIDTHS)
            outputs.append(f"{type_name(width, signed)} o{k};")
            self.lines.append(f"hdr.o.o{k} = {self.number(width, signed, 3)};")
            bits += width
        if -bits % 8:
            outputs.append(f"bit<{-bits % 8}> spare;")
            self.lines.append("hdr.o.spare = 0;")
        inputs = [f"{type_name(width, signed)} {name};" for name, width, signed in fields]
        if self.spare:
            inputs.append(f"bit<{self.spare}> spare;")
        self.text = program(" ".join(inputs), " ".join(outputs), "\n".join(self.lines))

    def frames(self, count: int = 24) -> list[bytes]:
        made = [bytes(self.in_bytes), b"\xff" * self.in_bytes]
        for _ in range(count):
            value = 0
            for _, width, _ in self.fields:
                top = 1 << width - 1
                edge = self.rng.choice([0, 1, 2 * top - 1, top, top - 1, self.rng.getrandbits(width)])
                value = value << width | edge & (2 * top - 1)
            made.append((value << self.spare).to_bytes(self.in_bytes, "big"))
        return made

    def values(self, frame: bytes) -> dict[str, int]:
        """The fields of a frame."""
        rest = int.from_bytes(frame, "big") >> self.spare
        found = {}
        for name, width, signed in reversed(self.fields):
            value, rest = rest & (1 << width) - 1, rest >> width
            found[name] = value - (1 << width) if signed and value >> width - 1 else value
        return found

    # --- expressions -----------------------------------------------------------------------------------------------

    def _literal(self, width: int, signed: bool) -> str:
        top = 1 << width - 1
        if not signed:
            return f"{width}w{self.rng.choice([0, 1, 2 * top - 1, top, self.rng.getrandbits(width)])}"
        value = self.rng.choice([0, 1, -1, top - 1, 1 - top, self.rng.getrandbits(width) % top])
        return f"{width}s{value}" if value >= 0 else f"(-{width}s{-value})"

    def _leaf(self, width: int, signed: bool) -> str:
        rng = self.rng
        fitting = [name for name, w, s in self.fields if (w, s) == (width, signed)]
        wider = [(name, w) for name, w, _ in self.fields if w >= width]
        if fitting and rng.random() < 0.75:
            return f"hdr.i.{rng.choice(fitting)}"
        if wider and rng.random() < 0.8:
            name, w = rng.choice(wider)
            low = rng.randint(0, w - width)
            sliced = f"hdr.i.{name}[{low + width - 1}:{low}]"
            return f"(int<{width}>)({sliced})" if signed else sliced
        if rng.random() < 0.3:
            return self._literal(width, signed)
        name, w, s = rng.choice(self.fields)
        return self._cast(f"hdr.i.{name}", (w, s), (width, signed))

    def _cast(self, text: str, origin: tuple[int, bool], to: tuple[int, bool]) -> str:
        """Casts change the width or the sign, not both: in either order."""
        (width, signed), (to_width, to_signed) = origin, to
        if signed == to_signed:
            return f"({type_name(to_width, to_signed)})({text})"
        sign_first = to_width == 1 or (width > 1 and self.rng.random() < 0.5)
        middle = type_name(width, to_signed) if sign_first else type_name(to_width, signed)
        return f"({type_name(to_width, to_signed)})(({middle})({text}))"

    def number(self, width: int, signed: bool, depth: int) -> str:
        """An expression of type bit<width> or int<width>."""
        rng, below = self.rng, depth - 1
        kind = rng.randrange(11)
        if depth == 0 or rng.random() < 0.1:
            return self._leaf(width, signed)
        if kind <= 3:
            saturating = ["|+|", "|-|"] if width <= SATURATED_MAX else []
            op = rng.choice(["+", "-", "*", "&", "|", "^", *saturating])
            return f"({self.number(width, signed, below)} {op} {self.number(width, signed, below)})"
        if kind == 4:
            return f"({rng.choice('~-')}{self.number(width, signed, below)})"
        if kind == 5:
            amount = rng.randint(0, width - 1 if signed else width + 1)
            return f"({self.number(width, signed, below)} {rng.choice(['<<', '>>'])} {amount})"
        if kind == 6:
            amount_text = self.number(rng.choice([1, 2, 5, 8]), False, min(below, 1))
            return f"({self.number(width, signed, below)} {rng.choice(['<<', '>>'])} {amount_text})"
        if kind == 7 and width > (3 if signed else 1):
            high = rng.randint(2, width - 2) if signed else rng.randint(1, width - 1)
            return f"({self.number(high, signed, below)} ++ {self.number(width - high, signed, below)})"
        if kind == 8:
            other_signed = rng.random() < 0.5
            other = rng.choice(WIDTHS[1:] if other_signed else WIDTHS)
            return self._cast(self.number(other, other_signed, below), (other, other_signed), (width, signed))
        if kind == 9:
            left, right = self.number(width, signed, below), self.number(width, signed, below)
            return f"({self.truth(below)} ? {left} : {right})"
        if kind == 10 and not signed:
            other = rng.choice([w for w in WIDTHS if w >= width])
            low = rng.randint(0, other - width)
            base = self.number(other, other > 1 and rng.random() < 0.4, below)
            return f"({base})[{low + width - 1}:{low}]"
        return self._leaf(width, signed)

    def truth(self, depth: int) -> str:
        """An expression of type bool."""
        rng, below = self.rng, depth - 1
        if depth <= 0:
            return f"(hdr.i.{rng.choice(self.fields)[0]} != 0)"
        kind = rng.randrange(5)
        if kind == 0:
            return f"(!{self.truth(below)})"
        if kind == 1:
            return f"({self.truth(below)} {rng.choice(['&&', '||', '==', '!='])} {self.truth(below)})"
        signed = rng.random() < 0.5
        width = rng.choice(WIDTHS[1:] if signed else WIDTHS)
        op = rng.choice(["==", "!=", "<", "<=", ">", ">="])
        return f"({self.number(width, signed, below)} {op} {self.number(width, signed, below)})"
