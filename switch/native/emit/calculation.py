"""Hashes and checksums: one C function each, which gathers the input bits and runs the algorithm over them."""

from p4c.model import Header, Program, UnsupportedError
from p4c.model.expressions import FieldRef
from p4c.model.externs import Calculation, Checksum, ConstInput, FieldInput, HeaderInput, PayloadInput
from p4c.model.limits import FRAME_BYTES_MAX
from p4c.model.pipelines import ActionProfile
from switch.native.emit.bytes import store_header
from switch.native.emit.expression import ExpressionEmitter
from switch.native.emit.layout import Layout, header_bytes_max, is_wide, varbit_bytes
from switch.native.emit.statement import SCOPE, SCOPE_ARGS
from switch.native.emit.value import constant

# The C function of hash.h; the custom polynomials keep their default parameters, which are those of the plain ones.
ALGORITHMS = {
    "crc16": "hash_crc16",
    "crc16_custom": "hash_crc16",
    "crc32": "hash_crc32",
    "crc32_custom": "hash_crc32",
    "crcCCITT": "hash_ccitt",
    "csum16": "hash_csum16",
    "cksum16": "hash_csum16",
    "identity": "hash_identity",
    "xor16": "hash_xor16",
    "xor32": "hash_xor32",
}


def selector_name(profile: ActionProfile) -> str:
    return f"selector_{profile.index}"


class Calculations:
    def __init__(self, program: Program, layout: Layout) -> None:
        self.program = program
        self.layout = layout

    def functions(self) -> list[str]:
        lines: list[str] = []
        selectors = [(selector_name(p), p.selector) for p in self.program.profiles if p.selector]
        named = [(f"calculation_{calculation.index}", calculation) for calculation in self.program.calculations]
        for name, calculation in named + selectors:
            # Apart: its registers and stack would cost a caller that does not come to it.
            lines += [f"static __attribute__((noinline)) u64 {name}({SCOPE})", "{"]
            lines += [f"    {line}" for line in self._body(calculation)]
            lines += ["}", ""]
        return lines

    def learning(self) -> list[str]:
        """Keeps the digest that a packet asked for, if it is enabled: what the fields are, also of invalid headers."""
        lists = self.program.learn_lists
        if not lists:
            return []
        room = max(sum(learned.widths) for learned in lists) // 8 + 8
        lines = [f"static __attribute__((noinline)) void learn({SCOPE})", "{", f"    u8 input[{room}];"]
        lines += ["    size_t bits = 0;", "    (void)p; (void)h; (void)now_ns;"]
        lines += ["    if (!(d->digests_enabled >> (d->digest - 1) & 1))", "        return;"]
        lines += [f"    memset(input, 0, {room});", "    switch (d->digest) {"]
        for place, learned in enumerate(lists, 1):
            lines += [f"    case {place}:", *(f"        {self._put(item)}" for item in learned.items), "        break;"]
        return [*lines, "    }", "    d->learn(d, d->digest, input, (u32)(bits + 7) / 8);", "}", ""]

    def _put(self, item: FieldInput | ConstInput) -> str:
        if isinstance(item, FieldInput):
            return self._put_field(item.field)
        if item.width_bits > 128:
            raise UnsupportedError(f"a constant of {item.width_bits} bits as the input of a hash or digest")
        return f"put_bits(input, &bits, {item.width_bits}, {constant(item.value)});"

    def _body(self, calculation: Calculation) -> list[str]:
        algorithm = ALGORITHMS.get(calculation.algorithm)
        if algorithm is None:
            known = ", ".join(sorted(ALGORITHMS))
            raise UnsupportedError(f"hash algorithm {calculation.algorithm}: the native engine has {known}")
        with_payload = any(isinstance(item, PayloadInput) for item in calculation.inputs)
        room = sum(_bits(item) for item in calculation.inputs) // 8 + 8
        if room > FRAME_BYTES_MAX + 8:
            raise UnsupportedError(f"a hash or checksum of up to {room - 8} bytes; the most is {FRAME_BYTES_MAX}")
        payload = " + FRAME_MAX" if with_payload else ""
        lines = ["(void)d; (void)p; (void)h; (void)now_ns;", f"u8 input[{room}{payload}];", "size_t bits = 0;"]
        lines.append(f"memset(input, 0, {room});")
        for item in calculation.inputs:
            match item:
                case FieldInput(ref):
                    header = self.layout.header(ref.header)
                    put = self._put(item)
                    lines.append(put if ref.header.metadata else f"if ({header}.valid)\n        {put}")
                case ConstInput():
                    lines.append(self._put(item))
                case HeaderInput(header):
                    lines += self._put_header(header)
        lines.append("size_t bytes = (bits + 7) / 8;")
        if with_payload:
            lines.append("bytes += put_payload(d, p, input + bytes);")
        lines.append(f"return {algorithm}(input, bytes);")
        return lines

    def _put_field(self, ref: FieldRef) -> str:
        text = self.layout.field(ref)
        if ref.field.varbit:
            length = f"{self.layout.header(ref.header)}.{self.layout.varbit_length(ref.field)}"
            return f"put_bytes(input, &bits, {length}, {text});"
        if is_wide(ref.field):
            return f"put_bytes(input, &bits, {ref.field.width_bits // 8}, {text});"
        return f"put_bits(input, &bits, {ref.field.width_bits}, {text});"

    def _put_header(self, header: Header) -> list[str]:
        pointer = f"(&{self.layout.header(header)})"
        return [
            f"if ({pointer}->valid) {{",
            "    u8 *at = input + (bits + 7) / 8;",
            *(f"    {line}" for line in store_header(self.layout, header.type, pointer, "at")),
            "    bits = (size_t)(at - input) * 8;",
            "}",
        ]

    def verify(self) -> list[str]:
        return self._checksums(verify=True)

    def update(self) -> list[str]:
        return self._checksums(verify=False)

    def _checksums(self, verify: bool) -> list[str]:
        lines: list[str] = []
        for checksum in self.program.checksums:
            if checksum.verify if verify else checksum.update:
                lines += self._checksum(checksum, verify)
        return lines

    def _checksum(self, checksum: Checksum, verify: bool) -> list[str]:
        target, field = self.layout.field(checksum.target), checksum.target.field
        if field.width_bits > 64:
            raise UnsupportedError(f"checksum {checksum.name} of more than 64 bits")
        value = f"calculation_{checksum.calculation.index}({SCOPE_ARGS}) & 0x{field.mask:x}ull"
        if verify:
            lines = [f"if ((u64){target} != ({value}))", "    p->checksum_error = 1;"]
        else:
            lines = [f"{target} = (u{next(b for b in (8, 16, 32, 64) if field.width_bits <= b)})({value});"]
        conditions = []
        if verify and not checksum.target.header.metadata:
            conditions.append(f"{self.layout.header(checksum.target.header)}.valid")
        if checksum.condition is not None:
            conditions.append(f"({ExpressionEmitter(self.layout).boolean(checksum.condition)})")
        if not conditions:
            return lines
        return [f"if ({' && '.join(conditions)}) {{", *(f"    {line}" for line in lines), "}"]


def _bits(item: object) -> int:
    match item:
        case FieldInput(ref):
            return varbit_bytes(ref.header.type) * 8 if ref.field.varbit else ref.field.width_bits
        case ConstInput(_, width):
            return width
        case HeaderInput(header):
            return header_bytes_max(header.type) * 8 + 8
    return 0
