"""Random P4 programs that say nothing undefined, so that any two compilers must agree on every packet.

Every variable is set before use, the one header is always valid, and shifts stay within reason. A program is a
function of its seed.
"""

import random
import re

from tests.helpers.p4.around import EXTRACT, around

WIDTHS = (1, 3, 4, 7, 8, 9, 16, 19, 32, 48, 64, 128)


class RandomProgram:
    """`text` is the source, `header_bytes` how long a packet must be to be parsed.

    `loops` asks for loops and assertions too: "for" writes the loops, "rounds" the same program with each round for
    itself.
    """

    def __init__(self, seed: int, loops: str = "") -> None:
        self.rng = random.Random(seed)
        self.loops = loops
        rng = self.rng
        self.fields = {f"f{i}": rng.choice(WIDTHS) for i in range(rng.randint(4, 8))}
        spare = -sum(self.fields.values()) % 8
        if spare:
            self.fields["spare"] = spare
        self.header_bytes = sum(self.fields.values()) // 8
        self.meta = {f"m{i}": rng.choice(WIDTHS) for i in range(rng.randint(2, 4))}
        self.flags = [f"b{i}" for i in range(2)]
        self.places = {f"hdr.data.{n}": w for n, w in self.fields.items()}
        self.places |= {f"meta.{n}": w for n, w in self.meta.items()}
        self.bools = [f"meta.{n}" for n in self.flags]
        self.functions: list[tuple[str, int, int]] = []
        self.actions: list[tuple[str, list[int]]] = []
        self.tables: list[tuple[str, list[str]]] = []
        self.controls: list[tuple[str, bool, int, int]] = []
        self.locals_count = 0
        self.ends = ["return", "exit"]
        self.text = self._program()

    # --- expressions -----------------------------------------------------------------------------------------------

    def literal(self, width: int) -> str:
        rng = self.rng
        edge = rng.choice([0, 1, (1 << width) - 1, 1 << (width - 1), rng.getrandbits(width)])
        return f"{width}w{edge:#x}"

    def number(self, width: int, depth: int = 3) -> str:
        """An expression of type bit<width>."""
        rng = self.rng
        fitting = [p for p, w in self.places.items() if w == width]
        wider = [(p, w) for p, w in self.places.items() if w > width]
        if depth == 0 or rng.random() < 0.15:
            if fitting and rng.random() < 0.6:
                return rng.choice(fitting)
            if wider and rng.random() < 0.7:
                place, w = rng.choice(wider)
                low = rng.randint(0, w - width)
                return f"{place}[{low + width - 1}:{low}]"
            return self.literal(width)
        kind = rng.randrange(11)
        below = depth - 1
        if kind <= 2:
            op = rng.choice(["+", "-", "*", "&", "|", "^", "|+|", "|-|"])
            return f"({self.number(width, below)} {op} {self.number(width, below)})"
        if kind == 3:
            return f"({rng.choice(['~', '-'])}{self.number(width, below)})"
        if kind == 4:
            return f"({self.number(width, below)} {rng.choice(['<<', '>>'])} {rng.randint(0, width)})"
        if kind == 5:
            return f"({self.number(width, below)} {rng.choice(['<<', '>>'])} {self.number(4, 0)})"
        if kind == 6 and width > 1:
            high = rng.randint(1, width - 1)
            return f"({self.number(high, below)} ++ {self.number(width - high, below)})"
        if kind == 7:
            other = rng.choice(WIDTHS)
            return f"(bit<{width}>)({self.number(other, below)})"
        if kind == 8:
            return f"({self.truth(below)} ? {self.number(width, below)} : {self.number(width, below)})"
        if kind == 9 and width > 1:
            signed = f"(int<{width}>)"
            op = rng.choice(["+", "-", "&", "|", "^"])
            return f"(bit<{width}>)({signed}({self.number(width, below)}) {op} {signed}({self.number(width, below)}))"
        return self.number(width, below)

    def truth(self, depth: int = 2) -> str:
        """An expression of type bool."""
        rng = self.rng
        kind = rng.randrange(6)
        below = max(depth - 1, 0)
        if depth == 0 or kind == 0:
            return rng.choice([*self.bools, "true", "false"])
        if kind == 1:
            return f"(!{self.truth(below)})"
        if kind == 2:
            return f"({self.truth(below)} {rng.choice(['&&', '||'])} {self.truth(below)})"
        if kind == 3:
            width = rng.choice([8, 16, 32])
            op = rng.choice(["<", "<=", ">", ">="])
            return f"((int<{width}>)({self.number(width, below)}) {op} (int<{width}>)({self.number(width, below)}))"
        width = rng.choice(WIDTHS)
        op = rng.choice(["==", "!=", "<", "<=", ">", ">="])
        return f"({self.number(width, below)} {op} {self.number(width, below)})"

    # --- statements ------------------------------------------------------------------------------------------------

    def assignment(self) -> str:
        rng = self.rng
        if self.bools and rng.random() < 0.2:
            return f"{rng.choice(self.bools)} = {self.truth()};"
        place, width = rng.choice(list(self.places.items()))
        if width > 2 and rng.random() < 0.25:
            high = rng.randint(1, width - 1)
            low = rng.randint(0, high)
            return f"{place}[{high}:{low}] = {self.number(high - low + 1)};"
        return f"{place} = {self.number(width)};"

    def statement(self, depth: int, inside_action: bool = False) -> list[str]:
        rng = self.rng
        if self.loops and depth and rng.random() < 0.2:
            return self._loop(depth, inside_action)
        kind = rng.randrange(12)
        if depth and kind <= 1:
            lines = [f"if ({self.truth()}) {{", *self.block(depth - 1, inside_action), "}"]
            if rng.random() < 0.6:
                lines += ["else {", *self.block(depth - 1, inside_action), "}"]
            return lines
        if depth and kind == 2 and not inside_action:
            width = rng.choice([3, 8, 16])
            labels = sorted({rng.randrange(6) for _ in range(3)})
            lines = [f"switch ({self.number(width)}) {{"]
            for label in labels:
                lines += [f"{width}w{label}: {{", *self.block(0, inside_action), "}"]
            return [*lines, "default: {", *self.block(0, inside_action), "}", "}"]
        if kind == 3 and self.functions:
            name, given, returned = rng.choice(self.functions)
            places = [p for p, w in self.places.items() if w == given]
            targets = [p for p, w in self.places.items() if w == returned]
            if places and targets:
                return [f"{rng.choice(targets)} = {name}({self.number(given, 1)}, {rng.choice(places)});"]
        if kind == 4 and self.actions and not inside_action:
            name, widths = rng.choice(self.actions)
            return [f"{name}({', '.join(self.number(w, 1) for w in widths)});"]
        if kind == 5 and self.tables and not inside_action:
            return self._apply(depth)
        if kind == 8 and self.controls and not inside_action:
            applied = self._apply_control()
            if applied:
                return [applied]
        if kind == 6:
            self.locals_count += 1
            name, width = f"v{self.locals_count}", rng.choice(WIDTHS)
            line = f"bit<{width}> {name} = {self.number(width)};"
            places = [p for p, w in self.places.items() if w == width]
            return [line, f"{rng.choice(places)} = {name} ^ {self.literal(width)};"] if places else [line]
        if kind == 7 and rng.random() < 0.15:
            return [f"if ({self.truth()}) {{ {rng.choice(self.ends)}; }}"]
        return [self.assignment()]

    def _loop(self, depth: int, inside_action: bool) -> list[str]:
        rng = self.rng
        self.locals_count += 1
        name, width = f"i{self.locals_count}", rng.choice([4, 8, 64])
        first, step, rounds = rng.randint(0, 3), rng.randint(1, 2), rng.randint(0, 4)
        body = [] if inside_action else [f"{rng.choice(['assert', 'assume'])}({self.truth()});"]
        outer = self.places
        for _ in range(rng.randint(1, 2)):
            place, bits = rng.choice(list(outer.items()))
            self.places = outer | {name: width}
            body.append(f"{place} = {self.number(bits, 2)} ^ (bit<{bits}>) {name};")
            self.places = outer
        body += self.block(depth - 1, inside_action=True)
        values = range(first, first + step * rounds, step)
        if self.loops == "for":
            if step == 1 and rounds:
                return [f"for (bit<{width}> {name} in {first}..{values[-1]}) {{", *body, "}"]
            counted = f"bit<{width}> {name} = {first}; {name} != {first + step * rounds}; {name} = {name} + {step}"
            return [f"for ({counted}) {{", *body, "}"]
        return [re.sub(rf"\b{name}\b", f"{width}w{v}", line) for v in values for line in ("{", *body, "}")]

    def _apply(self, depth: int) -> list[str]:
        rng = self.rng
        # BMv2 knows one successor for a table: apply it once.
        name, actions = self.tables.pop(rng.randrange(len(self.tables)))
        form = rng.randrange(3)
        if form == 0 or not depth:
            return [f"{name}.apply();"]
        if form == 1:
            test = rng.choice(["hit", "miss"])
            not_ = rng.choice(["", "!"])
            lines = [f"if ({not_}{name}.apply().{test}) {{", *self.block(depth - 1), "}"]
            return [*lines, "else {", *self.block(depth - 1), "}"]
        lines = [f"switch ({name}.apply().action_run) {{"]
        for action in actions[:2]:
            lines += [f"{action}: {{", *self.block(0), "}"]
        return [*lines, "default: {", *self.block(0), "}", "}"]

    def block(self, depth: int, inside_action: bool = False) -> list[str]:
        lines: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            lines += self.statement(depth, inside_action)
        return lines

    # --- declarations ----------------------------------------------------------------------------------------------

    def _function(self, index: int) -> str:
        rng = self.rng
        given, returned = rng.choice(WIDTHS), rng.choice(WIDTHS)
        outer, outer_bools = self.places, self.bools
        self.places, self.bools = {"a": given, "b": given}, []
        lines = [f"bit<{returned}> fn{index}(in bit<{given}> a, inout bit<{given}> b) {{"]
        lines.append(f"if (a > b) {{ b = {self.number(given, 2)}; return {self.number(returned, 2)}; }}")
        lines.append(f"b = {self.number(given, 2)};")
        lines.append(f"return {self.number(returned, 2)};")
        self.places, self.bools = outer, outer_bools
        self.functions.append((f"fn{index}", given, returned))
        return "\n".join([*lines, "}"])

    def _action(self, index: int) -> str:
        widths = [self.rng.choice(WIDTHS) for _ in range(self.rng.randint(0, 2))]
        parameters = ", ".join(f"bit<{w}> p{i}" for i, w in enumerate(widths))
        outer = dict(self.places)
        readable = {f"p{i}": w for i, w in enumerate(widths)}
        lines = [f"action act{index}({parameters}) {{"]
        for _ in range(self.rng.randint(1, 3)):
            # Parameters may be read, not written.
            place, width = self.rng.choice(list(outer.items()))
            self.places = outer | readable
            lines.append(f"{place} = {self.number(width, 2)};")
            self.places = outer
            lines += self.statement(1, inside_action=True)
        self.actions.append((f"act{index}", widths))
        return "\n".join([*lines, "}"])

    def _control(self, index: int) -> str:
        """A control of its own: with all headers or without, one number written back and one only read."""
        rng = self.rng
        whole, written, read = rng.random() < 0.5, rng.choice(WIDTHS), rng.choice(WIDTHS)
        outer = self.places, self.bools, self.actions, self.tables, self.controls
        # At an exit p4c does not copy a control's parameters back, as the language wants: only returns here.
        self.ends = ["return"]
        self.places = {"a": written} | ({p: w for p, w in self.places.items() if p[0] == "h"} if whole else {})
        self.bools, self.actions, self.tables, self.controls = [], [], [], []
        action = self._action(100 + index)
        written_places = self.places
        self.places = written_places | {"b": read}
        table = self._table(100 + index)
        lines = [f"if ({self.truth()}) {{ a = {self.number(written, 2)}; }}"]
        self.places = written_places
        for _ in range(3):
            place, width = rng.choice(list(written_places.items()))
            self.places = written_places | {"b": read}
            lines.append(f"{place} = {self.number(width, 2)};")
            self.places = written_places
            if rng.random() < 0.3:
                lines.append(f"if ({self.truth()}) {{ return; }}")
            if rng.random() < 0.3 and self.tables:
                lines += self._apply(1)
        self.places, self.bools, self.actions, self.tables, self.controls = outer
        self.ends = ["return", "exit"]
        self.controls.append((f"Sub{index}", whole, written, read))
        parameters = f"{'inout headers_t hdr, ' if whole else ''}inout bit<{written}> a, in bit<{read}> b"
        body = "\n".join(lines)
        return f"control Sub{index}({parameters}) {{\n{action}\n{table}\napply {{\n{body}\n}}\n}}"

    def _apply_control(self) -> str:
        # An instance is applied once: BMv2 knows one successor for a table.
        rng = self.rng
        name, whole, written, read = self.controls.pop(rng.randrange(len(self.controls)))
        places = [p for p, w in self.places.items() if w == written]
        if not places:
            return ""
        return f"{name}.apply({'hdr, ' if whole else ''}{rng.choice(places)}, {self.number(read, 1)});"

    def _table(self, index: int) -> str:
        rng = self.rng
        keys = rng.sample(list(self.places.items()), k=rng.randint(1, 2))
        kinds = [rng.choice(["exact", "ternary", "lpm", "range"]) for _ in keys]
        if kinds.count("lpm") == 2:
            kinds[1] = "exact"
        chosen = rng.sample(self.actions, k=min(len(self.actions), 3))
        lines = [f"table t{index} {{", "key = {"]
        lines += [f"{place}: {kind};" for (place, _), kind in zip(keys, kinds, strict=True)]
        lines += ["}", "actions = {", *(f"{name};" for name, _ in chosen), "}", "const entries = {"]
        seen: set[str] = set()
        for _ in range(rng.randint(1, 5)):
            parts = [self._key(width, kind) for (_, width), kind in zip(keys, kinds, strict=True)]
            text = ", ".join(parts) if len(parts) == 1 else f"({', '.join(parts)})"
            if text not in seen:
                seen.add(text)
                name, widths = rng.choice(chosen)
                lines.append(f"{text}: {name}({', '.join(self.literal(w) for w in widths)});")
        name, widths = rng.choice(chosen)
        lines += ["}", f"const default_action = {name}({', '.join(self.literal(w) for w in widths)});", "}"]
        self.tables.append((f"t{index}", [name for name, _ in chosen]))
        return "\n".join(lines)

    def _key(self, width: int, kind: str) -> str:
        rng = self.rng
        if kind == "ternary":
            mask = rng.getrandbits(width)
            return f"{width}w{rng.getrandbits(width) & mask:#x} &&& {width}w{mask:#x}"
        if kind == "lpm":
            # p4c works out prefix lengths of at most 64 bits.
            length = rng.randint(1, width) if width <= 64 else width
            mask = ((1 << length) - 1) << (width - length)
            return (
                f"{width}w{rng.getrandbits(width) & mask:#x} &&& {width}w{mask:#x}"
                if width <= 64
                else self.literal(width)
            )
        if kind == "range":
            low = rng.getrandbits(width)
            return f"{width}w{low:#x} .. {width}w{rng.randint(low, (1 << width) - 1):#x}"
        return self.literal(width)

    def _program(self) -> str:
        rng = self.rng
        functions = "\n".join(self._function(i) for i in range(rng.randint(0, 2)))
        controls = "\n".join(self._control(i) for i in range(rng.randint(0, 3)))
        actions = "\n".join(self._action(i) for i in range(rng.randint(1, 4)))
        tables = "\n".join(self._table(i) for i in range(rng.randint(0, 3)))
        start = [f"meta.{n} = {self.literal(w)};" for n, w in self.meta.items()]
        start += [f"meta.{n} = {rng.choice(['true', 'false'])};" for n in self.flags]
        body: list[str] = list(start)
        for _ in range(rng.randint(2, 5)):
            body += self.statement(2)
        # What metadata ends up as must show in the packet.
        for name in self.meta:
            place, width = rng.choice(list(self.fields.items()))
            body.append(f"hdr.data.{place} = hdr.data.{place} ^ (bit<{width}>)meta.{name};")
        for name in self.flags:
            place = rng.choice(list(self.fields))
            body.append(f"if (meta.{name}) {{ hdr.data.{place} = ~hdr.data.{place}; }}")
        meta = [*(f"bit<{w}> {n};" for n, w in self.meta.items()), *(f"bool {n};" for n in self.flags)]
        types = f"header data_t {{ {' '.join(f'bit<{w}> {n};' for n, w in self.fields.items())} }}"
        parts = {"meta": " ".join(meta), "before": f"{functions}\n{controls}", "local": f"{actions}\n{tables}"}
        return around(types, "data_t data;", EXTRACT.format("data"), "\n".join(body), **parts)


PARTS = re.compile(r"\s+|\w+|[^\s\w]")


def mutated(rng: random.Random, text: str) -> str:
    """One or two words put where other words stand, or up to three parts deleted, doubled or exchanged."""
    parts = PARTS.findall(text)
    words = [i for i, part in enumerate(parts) if re.match(r"\w", part)]
    if rng.random() < 0.7:
        for _ in range(rng.randint(1, 2)):
            parts[rng.choice(words)] = parts[rng.choice(words)]
        return "".join(parts)
    for _ in range(rng.randint(1, 3)):
        i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
        change = rng.randrange(3)
        if change == 0:
            del parts[i]
        elif change == 1:
            parts.insert(i, parts[j])
        else:
            parts[i], parts[j] = parts[j], parts[i]
    return "".join(parts)
