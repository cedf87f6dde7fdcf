"""Random P4 programs about loops that end at run time, equality of stacks and varbit fields, and stacks of unions.

Each statement is drawn with its meaning in Python, after the specification of P4_16: `expected` is the right answer to
a frame. A program is a function of its seed.
"""

import random

from tests.helpers.p4.around import around

TYPES = """header kind_t { bit<8> sel; bit<8> a; bit<8> b; bit<8> c; }
header item_t { bit<8> v; }
header text_t { bit<8> bits; varbit<32> text; }
header one_t { bit<8> v; }
header two_t { bit<8> w; bit<8> v; }
header_union u_t { one_t one; two_t two; }"""
HEADERS = "kind_t k; item_t[2] x; item_t[2] y; text_t s; text_t t; u_t[2] u;"
TEXT = "packet.extract(hdr.{0}, (bit<32>) packet.lookahead<bit<8>>());"
STATES = f"""state start {{ packet.extract(hdr.k); transition select(hdr.k.sel[1:0]) {{ 0: ys; 1: x1; default: x2; }} }}
state x2 {{ packet.extract(hdr.x.next); transition x1; }}
state x1 {{ packet.extract(hdr.x.next); transition ys; }}
state ys {{ transition select(hdr.k.sel[3:2]) {{ 0: texts; 1: y1; default: y2; }} }}
state y2 {{ packet.extract(hdr.y.next); transition y1; }}
state y1 {{ packet.extract(hdr.y.next); transition texts; }}
state texts {{ transition select(hdr.k.sel[4:4]) {{ 1: both; default: accept; }} }}
state both {{ {TEXT.format("s")} {TEXT.format("t")} transition accept; }}"""
FIELDS = ("a", "b", "c")
Lines = list[str]


class RandomContainers:
    """`text` is the source. With `chosen`, a union of a stack may be chosen at run time."""

    def __init__(self, seed: int, *, chosen: bool = False) -> None:
        self.rng = random.Random(seed)
        self.chosen = chosen
        self.loops: list[str] = []
        self.count = 0
        body: Lines = []
        meaning: Lines = []
        for step in (self._loop, self._union, self._compare, *[self._statement] * self.rng.randint(1, 3)):
            lines, python = step(2)
            body += lines
            meaning += python
        self.meaning = compile("\n".join(meaning), "meaning", "exec")
        text = "\n".join(body)
        local = f"action run() {{\n{text}\n}}" if self.rng.random() < 0.5 else ""
        self.text = around(TYPES, HEADERS, STATES, "run();" if local else text, local=local)

    # --- statements: lines of P4, and of Python ----------------------------------------------------------------------

    def _number(self) -> tuple[str, str]:
        name = self.rng.choice([*FIELDS, *self.loops, ""])
        if name in FIELDS:
            return f"hdr.k.{name}", f"k['{name}']"
        number = str(self.rng.randrange(256))
        return (name, name) if name else (f"8w{number}", number)

    def _assign(self) -> tuple[Lines, Lines]:
        place, (p4, python), op = self.rng.choice(FIELDS), self._number(), self.rng.choice("+-^*")
        return [f"hdr.k.{place} = hdr.k.{place} {op} {p4};"], [f"k['{place}'] = (k['{place}'] {op} {python}) & 255"]

    def _statement(self, depth: int) -> tuple[Lines, Lines]:
        rng = self.rng
        if self.loops and rng.random() < 0.2:
            word, number = rng.choice(("break", "continue")), rng.randrange(7)
            return [f"if ({self.loops[-1]} == {number}) {{ {word}; }}"], [f"if {self.loops[-1]} == {number}: {word}"]
        kinds = [self._copy, self._union, self._read] + ([self._loop, self._compare] if depth else [])
        return rng.choice(kinds)(depth) if rng.random() < 0.7 else self._assign()

    def _block(self, depth: int) -> tuple[Lines, Lines]:
        parts = [self._assign(), *(self._statement(depth) for _ in range(self.rng.randint(1, 2)))]
        return [line for part in parts for line in part[0]], [f"    {line}" for part in parts for line in part[1]]

    def _loop(self, depth: int) -> tuple[Lines, Lines]:
        """At most 8 rounds. The bounds of a range are taken once, the condition before each round."""
        self.count += 1
        name = f"i{self.count}"
        start, limit = self._number(), self._number()
        first, last = [f"({n} & 3)" for n in start], [f"({n} & 7)" for n in limit]
        self.loops.append(name)
        body, meaning = self._block(depth - 1)
        self.loops.pop()
        if self.rng.random() < 0.5:
            words = f"bit<8> {name} in {first[0]}..{last[0]}"
            return [f"for ({words}) {{", *body, "}"], [f"for {name} in range({first[1]}, {last[1]} + 1):", *meaning]
        step = self.rng.randint(1, 3)
        words = f"bit<8> {name} = {first[0]}; {name} < {last[0]}; {name} = {name} + {step}"
        begun = [f"{name}_ = {first[1]}", f"while {name}_ < {last[1]}:", f"    {name} = {name}_"]
        return [f"for ({words}) {{", *body, "}"], [*begun, f"    {name}_ += {step}", *meaning]

    def _compare(self, depth: int) -> tuple[Lines, Lines]:
        i, j, equal = self.rng.randrange(2), self.rng.randrange(2), self.rng.choice(("==", "!="))
        valid = "hdr.s.isValid() && hdr.t.isValid()"
        tests = [
            (f"hdr.x {equal} hdr.y", f"x {equal} y"),
            (f"hdr.x[{i}] {equal} hdr.y[{j}]", f"x[{i}] {equal} y[{j}]"),
            (f"hdr.s {equal} hdr.t", f"texts['s'] {equal} texts['t']"),
            (f"{valid} && hdr.s.text {equal} hdr.t.text", f"texts['s'] and texts['t'] and s_text() {equal} t_text()"),
            (f"hdr.u[{i}].isValid()", f"u[{i}]"),
            (f"hdr.u[{i}].two.isValid()", f"u[{i}] and u[{i}][0] == 'two'"),
        ]
        p4, python = self.rng.choice(tests)
        body, meaning = self._block(depth - 1)
        return [f"if ({p4}) {{", *body, "}"], [f"if {python}:", *meaning]

    def _copy(self, depth: int) -> tuple[Lines, Lines]:
        i, j = self.rng.randrange(2), self.rng.randrange(2)
        to, of = self.rng.choice((("x", "y"), ("y", "x")))
        forms = [
            (f"hdr.{to} = hdr.{of};", f"{to}[:] = {of}"),
            (f"hdr.{to}[{i}] = hdr.{of}[{j}];", f"{to}[{i}] = {of}[{j}]"),
            (f"hdr.{to}[{i}].setInvalid();", f"{to}[{i}] = None"),
            (f"hdr.{to}.push_front(1);", f"{to}[:] = [None, {to}[0]]"),
            (f"hdr.{to}.pop_front(1);", f"{to}[:] = [{to}[1], None]"),
            ("hdr.s = hdr.t;", "texts['s'] = texts['t']"),
        ]
        p4, python = self.rng.choice(forms)
        return [p4], [python]

    def _read(self, depth: int) -> tuple[Lines, Lines]:
        """A field of an element that is valid."""
        i, name, field = self.rng.randrange(2), self.rng.choice("xy"), self.rng.choice(FIELDS)
        p4 = f"if (hdr.{name}[{i}].isValid()) {{ hdr.k.{field} = hdr.k.{field} + hdr.{name}[{i}].v; }}"
        return [p4], [f"if {name}[{i}]: k['{field}'] = (k['{field}'] + {name}[{i}][0]) & 255"]

    def _union(self, depth: int) -> tuple[Lines, Lines]:
        """Making a member valid makes the other one invalid."""
        rng = self.rng
        (i, at), (j, of) = [(str(n), str(n)) for n in (rng.randrange(2), rng.randrange(2))]
        if self.chosen and rng.random() < 0.8:
            field = rng.choice(FIELDS)
            i, at = f"hdr.k.{field} & 1", f"k['{field}'] & 1"
        (p4, python), field = self._number(), rng.choice(FIELDS)
        forms = [
            (f"hdr.u[{i}].one = {{ {p4} }};", f"u[{at}] = ('one', [{python}])"),
            (f"hdr.u[{i}].two = {{ {p4}, 7 }};", f"u[{at}] = ('two', [{python}, 7])"),
            (f"hdr.u[{i}] = hdr.u[{j}];", f"u[{at}] = u[{of}]"),
            (
                f"if (hdr.u[{i}].two.isValid()) {{ hdr.k.{field} = hdr.k.{field} ^ hdr.u[{i}].two.w; }}",
                f"if u[{at}] and u[{at}][0] == 'two': k['{field}'] ^= u[{at}][1][0]",
            ),
        ]
        p4, python = rng.choice(forms)
        return [p4], [python]

    # --- frames ------------------------------------------------------------------------------------------------------

    def frame(self, rng: random.Random) -> bytes:
        """One that is parsed; its bytes are few, so that stacks and texts are often equal."""

        def few(count: int) -> list[int]:
            return [rng.choice((0, 1, 1, 2, 255)) for _ in range(count)]

        sel = rng.randrange(32)
        parts = [sel, *(rng.randrange(256) for _ in FIELDS), *few(min(sel & 3, 2) + min(sel >> 2 & 3, 2))]
        for _ in range(2 * (sel >> 4)):
            count = rng.randrange(5)
            parts += [8 * count, *few(count)]
        return bytes(parts + few(rng.randrange(3)))

    def expected(self, frame: bytes) -> bytes:
        rest = list(frame)

        def taken(count: int) -> list[int]:
            part, rest[:] = rest[:count], rest[count:]
            return part

        sel, *numbers = taken(4)
        stacks = [[taken(1) if n < min(sel >> by & 3, 2) else None for n in range(2)] for by in (0, 2)]
        texts = {name: [rest[0], *taken(1 + rest[0] // 8)[1:]] if sel >> 4 else None for name in "st"}
        k = dict(zip(FIELDS, numbers, strict=True))
        u: list[tuple[str, list[int]] | None] = [None, None]

        def text(name: str) -> int:
            return int.from_bytes(bytes((texts[name] or [0])[1:]), "big")

        known = {"k": k, "x": stacks[0], "y": stacks[1], "texts": texts, "u": u}
        exec(self.meaning, known | {"s_text": lambda: text("s"), "t_text": lambda: text("t")})
        unions = [each[1] for each in u if each]
        parts = [[sel, *k.values()], *stacks[0], *stacks[1], *texts.values(), *unions, rest]
        return bytes(byte for part in parts if part for byte in part)
