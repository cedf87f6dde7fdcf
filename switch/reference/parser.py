"""Runs the parse graph (bm_sim/parser.cpp)."""

from collections.abc import Callable

from p4c.model import Header, parsers
from p4c.model.expressions import LastField
from p4c.model.limits import PARSER_STATES_MAX
from switch.reference.expressions import fit
from switch.reference.packet import Packet
from switch.reference.primitives import compile_primitive
from switch.reference.runtime import Runtime
from switch.reference.trace import show

# Takes the packet and the byte position, returns the new position.
Step = Callable[[Packet, int], int]
KeyReader = Callable[[Packet, int], int]


class ParserError(Exception):
    """Parsing ends here; the code goes to standard_metadata.parser_error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ParserRunner:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.errors = runtime.program.errors
        model = runtime.program.parser
        self.init_state = model.init_state
        self.value_sets: dict[str, set[tuple[int, ...]]] = {v.name: set() for v in runtime.program.value_sets}
        self.states = {state.name: self._state(state) for state in model.states}

    def parse(self, packet: Packet) -> int:
        """Fill the header vector from `packet.data` and leave the rest in `packet.payload`; the error code."""
        position, name, error = 0, self.init_state, self.errors["NoError"]
        for _ in range(PARSER_STATES_MAX):
            if name is None:
                break
            self.runtime.record(packet, "parser_state", state=name)
            state, operations, select = self.states[name]
            try:
                for operation in operations:
                    position = operation(packet, position)
                name = select(packet, position)
            except ParserError as failure:
                error = failure.code
                break
            if self.runtime.trace is not None and state.key:
                key = ", ".join(show(v) for v in self._key)
                self.runtime.record(packet, "select", key=key, next=name)
        else:
            error = self.errors["ParserTimeout"]
        if error != self.errors["NoError"]:
            self.runtime.record(packet, "parser_error", error=self.runtime.program.error_name(error), state=name)
        packet.payload = packet.data[position:]
        return error

    def _fail(self, error: str) -> ParserError:
        return ParserError(self.errors[error])

    # --- states ---

    def _state(self, state: parsers.State) -> tuple[parsers.State, list[Step], Callable[[Packet, int], str | None]]:
        readers = [self._key_part(part) for part in state.key]
        transitions = [
            (tuple(zip(t.values, t.masks, strict=True)), t.value_set, t.next_state) for t in state.transitions
        ]
        sets = self.value_sets

        def select(packet: Packet, position: int) -> str | None:
            key = self._key = [read(packet, position) for read in readers]
            for tests, chosen, next_state in transitions:
                if chosen is not None:
                    if tuple(key) in sets[chosen]:
                        return next_state
                elif all(part & mask == value for part, (value, mask) in zip(key, tests, strict=True)):
                    return next_state
            return state.default

        return state, [self._operation(op) for op in state.operations], select

    def _key_part(self, part: parsers.KeyPart) -> KeyReader:
        source, layout = part.source, self.runtime.layout
        mask = (1 << part.width_bits) - 1
        if isinstance(source, parsers.Lookahead):
            return self._lookahead(source)
        if isinstance(source, parsers.LastUnionField):
            stack, member, field = source.stack, source.member_index, source.field.index

            def read_union(packet: Packet, position: int) -> int:
                count = packet.union_nexts[stack.index]
                if count == 0:
                    return 0
                header = stack.unions[count - 1].headers[member]
                return packet.values[layout.bases[header.index] + field] & mask

            return read_union
        read = self.runtime.expressions.reader(source)
        if isinstance(source, LastField) or source.field.signed:
            return lambda packet, position: read(packet) & mask
        return lambda packet, position: read(packet)

    def _lookahead(self, lookahead: parsers.Lookahead) -> KeyReader:
        offset, width = lookahead.offset_bits, lookahead.width_bits
        first, end = offset // 8, (offset + width + 7) // 8
        shift, mask = end * 8 - offset - width, (1 << width) - 1

        def read(packet: Packet, position: int) -> int:
            if position + end > len(packet.data):
                raise self._fail("PacketTooShort")
            return int.from_bytes(packet.data[position + first : position + end], "big") >> shift & mask

        return read

    # --- operations ---

    def _operation(self, operation: parsers.Operation) -> Step:
        expressions = self.runtime.expressions
        match operation:
            case parsers.Extract():
                return self._extract(operation)
            case parsers.Set():
                return self._set(operation)
            case parsers.Verify(condition, error):
                test, code = expressions.test(condition), expressions.reader(error)

                def verify(packet: Packet, position: int) -> int:
                    if not test(packet):
                        raise ParserError(code(packet))
                    return position

                return verify
            case parsers.Advance(bits):
                read = expressions.reader(bits)

                def advance(packet: Packet, position: int) -> int:
                    position += self._whole_bytes(read(packet))
                    if position > len(packet.data):
                        raise self._fail("PacketTooShort")
                    self.runtime.record(packet, "advance", bytes=read(packet) // 8)
                    return position

                return advance
            case parsers.Call(primitive):
                run = compile_primitive(primitive, self.runtime)

                def call(packet: Packet, position: int) -> int:
                    run(packet)
                    return position

                return call

    def _whole_bytes(self, bits: int) -> int:
        """Negative lengths are taken for the huge unsigned ones that they are in P4's 32 bits."""
        bits &= 0xFFFFFFFF
        if bits % 8:
            raise self._fail("ParserInvalidArgument")
        return bits // 8

    def _set(self, operation: parsers.Set) -> Step:
        value, target = operation.value, operation.target
        write, store = self.runtime.expressions.writer(target), fit(target.field)
        look = self._lookahead(value) if isinstance(value, parsers.Lookahead) else None
        read = None if isinstance(value, parsers.Lookahead) else self.runtime.expressions.reader(value)
        name = f"{target.header.name}.{target.field.name}"

        def assign(packet: Packet, position: int) -> int:
            assigned = look(packet, position) if look is not None else read(packet)  # type: ignore[misc]
            write(packet, assigned)
            if self.runtime.trace is not None:
                shown = show(store(assigned), target.field.width_bits)
                self.runtime.record(packet, "parser_set", field=name, value=shown)
            return position

        return assign

    def _extract(self, operation: parsers.Extract) -> Step:
        into, width = operation.into, operation.varbit_width
        read_width = None if width is None else self.runtime.expressions.reader(width)

        def varbit_bytes(packet: Packet) -> int:
            return 0 if read_width is None else self._whole_bytes(read_width(packet))

        if isinstance(into, Header):
            return lambda packet, position: self._take(packet, position, into, varbit_bytes(packet))
        number, of_unions = into.stack.index, isinstance(into, parsers.UnionStackNext)
        if isinstance(into, parsers.UnionStackNext):
            elements = [union.headers[into.member_index] for union in into.stack.unions]
        else:
            elements = list(into.stack.headers)

        def extract_next(packet: Packet, position: int) -> int:
            nexts = packet.union_nexts if of_unions else packet.nexts
            if nexts[number] >= len(elements):
                raise self._fail("StackOutOfBounds")
            position = self._take(packet, position, elements[nexts[number]], varbit_bytes(packet))
            nexts[number] += 1
            return position

        return extract_next

    def _take(self, packet: Packet, position: int, header: Header, varbit_bytes: int) -> int:
        header_type = header.type
        size = header_type.width_bits // 8 + varbit_bytes
        if position + size > len(packet.data):
            raise self._fail("PacketTooShort")
        if header_type.varbit is not None and header_type.max_bytes and size > header_type.max_bytes:
            raise self._fail("HeaderTooShort")
        value = int.from_bytes(packet.data[position : position + size], "big")
        left = size * 8
        slot = self.runtime.layout.bases[header.index]
        for field in header_type.fields:
            width = varbit_bytes * 8 if field.varbit else field.width_bits
            left -= width
            raw = value >> left & ((1 << width) - 1)
            packet.values[slot] = raw - (1 << width) if field.signed and raw >> (width - 1) else raw
            slot += 1
        if header_type.varbit is not None:
            packet.varbits[header.index] = varbit_bytes * 8
        packet.set_valid(header.index)
        if self.runtime.trace is not None:
            start = self.runtime.layout.bases[header.index]
            fields = {f.name: show(packet.values[start + f.index], f.width_bits) for f in header_type.fields}
            self.runtime.record(packet, "extract", header=header.name, bytes=size, fields=fields)
        return position + size
