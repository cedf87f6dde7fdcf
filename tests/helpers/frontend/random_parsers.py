"""Random parsers that say nothing undefined: what they saw is written in front of the packet."""

import random

from tests.helpers.p4.around import around

TYPES = """error { Odd, Even }
header item_t { bit<8> more; bit<8> value; }
header seen_t { bit<8> error_; bit<8> valid; bit<32> a; bit<16> b; bit<8> c; }"""
START = """
    state start {
        // Constants would be passed on by p4c as keys, which BMv2 refuses.
        meta.a = packet.lookahead<bit<32>>();
        meta.b = packet.lookahead<bit<24>>()[15:0];
        meta.c = packet.lookahead<bit<8>>();
        transition s0;
    }"""
WRITTEN = """
hdr.seen.setValid();
hdr.seen.error_ = 99;
{errors}
hdr.seen.valid = 0;
{valid}
hdr.seen.a = meta.a; hdr.seen.b = meta.b; hdr.seen.c = meta.c;"""
META = {"meta.a": 32, "meta.b": 16, "meta.c": 8}
ERRORS = ("NoError", "PacketTooShort", "StackOutOfBounds", "Odd", "Even")
LAYOUTS = ((4, 4), (8, 16), (3, 13), (1, 7, 24), (8,), (12, 20), (48, 16))


class RandomParser:
    """`text` is the source."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        rng = self.rng
        self.headers = {f"h{i}": rng.choice(LAYOUTS) for i in range(rng.randint(2, 4))}
        self.count = rng.randint(3, 6)
        self.nested = rng.random() < 0.6
        self.text = self._program()

    def number(self, width: int, places: dict[str, int], depth: int = 2) -> str:
        rng = self.rng
        kind = rng.randrange(6) if depth else rng.randrange(3)
        if kind == 0:
            return f"{width}w{rng.getrandbits(width):#x}"
        return self.read(width, places) if kind <= 2 else self._operation(width, places, depth)

    def read(self, width: int, places: dict[str, int]) -> str:
        """A number that is not known at compile time."""
        rng = self.rng
        if rng.random() < 0.5:
            place, bits = rng.choice(list(places.items()))
            if bits > width:
                low = rng.randint(0, bits - width)
                return f"{place}[{low + width - 1}:{low}]"
            return place if bits == width else f"(bit<{width}>){place}"
        more = rng.choice([0, 0, 3, 8, 13])
        if not more:
            return f"packet.lookahead<bit<{width}>>()"
        low = rng.randint(0, more)
        return f"packet.lookahead<bit<{width + more}>>()[{low + width - 1}:{low}]"

    def _operation(self, width: int, places: dict[str, int], depth: int) -> str:
        rng = self.rng
        op = rng.choice(["+", "-", "&", "|", "^"])
        return f"({self.number(width, places, depth - 1)} {op} {self.number(width, places, depth - 1)})"

    def state(self, index: int) -> str:
        rng = self.rng
        lines: list[str] = []
        places = dict(META)
        choice = rng.random()
        if choice < 0.6:
            name = rng.choice(list(self.headers))
            lines.append(f"packet.extract(hdr.{name});")
            places |= {f"hdr.{name}.f{i}": bits for i, bits in enumerate(self.headers[name])}
        elif choice < 0.8:
            lines.append("packet.extract(hdr.items.next);")
            places |= {"hdr.items.last.more": 8, "hdr.items.last.value": 8}
        elif choice < 0.9:
            lines.append(f"packet.advance({rng.choice(['8', '16', '((bit<32>)meta.c & 3) << 3'])});")
        elif self.nested:
            lines.append("inner.apply(packet, hdr.h0, meta.c);")
        for _ in range(rng.randint(0, 2)):
            target, width = rng.choice(list(META.items()))
            line = f"{target} = {target} + {self.number(width, places)};"
            if rng.random() < 0.25:
                test = f"{self.number(8, places, 1)} > {self.number(8, places, 1)}"
                line = f"if ({test}) {{ {line} }} else {{ meta.c = meta.c + 7; }}"
            lines.append(line)
        if rng.random() < 0.2:
            lines.append(f"verify({self.number(8, places, 1)} != 3, error.{rng.choice(['Odd', 'Even'])});")
        lines.append(self._transition(index, places))
        body = "\n".join(f"        {line}" for line in lines)
        return f"    state s{index} {{\n{body}\n    }}"

    def _transition(self, index: int, places: dict[str, int]) -> str:
        rng = self.rng
        later = [f"s{i}" for i in range(index + 1, self.count)] + ["accept"]
        if "hdr.items.last.more" in places and rng.random() < 0.7:
            return f"transition select(hdr.items.last.more[0:0]) {{ 1: s{index}; default: {rng.choice(later)}; }}"
        if rng.random() < 0.2:
            return f"transition {rng.choice(later)};"
        keys = []
        for _ in range(rng.randint(1, 2)):
            width = rng.choice([1, 3, 8, 16])
            key = self.read(width, places)
            keys.append((key if rng.random() < 0.6 else f"({key} ^ {self.number(width, places, 0)})", width))
        cases = []
        for _ in range(rng.randint(1, 4)):
            sets = [self._key(width, wild=i > 0) for i, (_, width) in enumerate(keys)]
            cases.append(f"{sets[0] if len(sets) == 1 else '(' + ', '.join(sets) + ')'}: {rng.choice(later)};")
        cases.append(f"default: {rng.choice(later)};")
        return f"transition select({', '.join(text for text, _ in keys)}) {{ {' '.join(cases)} }}"

    def _key(self, width: int, wild: bool) -> str:
        # Of a case that fits everything and a default behind it, BMv2 takes the default, and p4c passes both on.
        rng = self.rng
        kind = rng.randrange(4)
        if kind == 0:
            return f"{rng.getrandbits(width)} &&& {rng.getrandbits(width) | 1}"
        if kind == 1 and wild:
            return "_"
        return str(rng.getrandbits(min(width, 3)))

    def _program(self) -> str:
        rng = self.rng
        types = [TYPES] + [
            f"header {name}_t {{ {' '.join(f'bit<{bits}> f{i};' for i, bits in enumerate(layout))} }}"
            for name, layout in self.headers.items()
        ]
        nested = ""
        if self.nested:
            first = self.headers["h0"][0]
            nested = f"""
parser Inner(packet_in packet, out h0_t header_, inout bit<8> steps) {{
    state start {{
        packet.extract(header_);
        steps = steps + 1;
        transition select(header_.f0) {{ {rng.getrandbits(min(first, 2))}: more; default: accept; }}
    }}
    state more {{ steps = steps ^ packet.lookahead<bit<8>>(); transition accept; }}
}}"""
        members = " ".join(f"{name}_t {name};" for name in self.headers)
        states = ["Inner() inner;" * self.nested, START, *(self.state(i) for i in range(self.count))]
        errors = (f"if (sm.parser_error == error.{name}) {{ hdr.seen.error_ = {i}; }}" for i, name in enumerate(ERRORS))
        valid = (
            f"if (hdr.{name}.isValid()) {{ hdr.seen.valid = hdr.seen.valid | {1 << i}; }}"
            for i, name in enumerate([*self.headers, "items[0]", "items[2]"])
        )
        body = WRITTEN.format(errors="\n".join(errors), valid="\n".join(valid))
        own = {"meta": "bit<32> a; bit<16> b; bit<8> c;", "before": nested}
        return around("\n".join(types), f"seen_t seen; {members} item_t[3] items;", "\n".join(states), body, **own)
