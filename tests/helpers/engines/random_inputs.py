"""Random packets, entries and port settings for any program, shaped so that they meet each other.

Packets follow the program's own parse graph; match values are drawn from the values that those packets carry.
Everything comes from one `random.Random`, so a seed reproduces a run.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from p4c.entries import ActionCall, Entry, EntryAction, Exact, GroupRef, Lpm, Match, MemberRef, Range, Ternary
from p4c.model import Program
from p4c.model.actions import Action
from p4c.model.expressions import FieldRef, LastField
from p4c.model.headers import Field, Header
from p4c.model.parsers import Extract, Lookahead, StackNext, State
from p4c.model.pipelines import Key, Table
from switch.engine import PRIORITIES, MeterConfig, PortConfig, QueueConfig, Replica
from switch.reference.pfc import pfc_frame

PORTS = (1, 2, 3, 4)
STATES_MAX = 40


@dataclass
class Pool:
    """Values seen in fields of packets, by field name, for keys to match."""

    rng: random.Random
    values: dict[str, list[int]] = field(default_factory=dict)

    def note(self, name: str, value: int) -> None:
        seen = self.values.setdefault(name, [])
        if len(seen) < 50:
            seen.append(value)

    def draw(self, name: str, width: int) -> int:
        """A value that packets have, a small number, an edge or anything."""
        seen, mask = self.values.get(name), (1 << width) - 1
        choice = self.rng.random()
        if seen and choice < 0.6:
            return self.rng.choice(seen) & mask
        if choice < 0.8:
            return self.rng.randrange(8) & mask
        if choice < 0.9:
            return self.rng.choice((0, 1, mask, mask - 1, mask >> 1)) & mask
        return self.rng.getrandbits(width)


class PacketMaker:
    def __init__(self, program: Program, rng: random.Random, pool: Pool) -> None:
        self.rng = rng
        self.pool = pool
        self.parser = program.parser
        self.states = {s.name: s for s in program.parser.states}

    def packet(self) -> bytes:
        data = self._well_formed()
        choice = self.rng.random()
        if choice < 0.05:
            data = self._pause()
        elif choice < 0.15:
            data = data[: self.rng.randrange(len(data) + 1)]
        elif choice < 0.3 and data:
            mutable = bytearray(data)
            for _ in range(self.rng.randrange(1, 5)):
                mutable[self.rng.randrange(len(mutable))] ^= 1 << self.rng.randrange(8)
            data = bytes(mutable)
        elif choice < 0.35:
            data = self.rng.randbytes(self.rng.randrange(200))
        return data

    def _well_formed(self) -> bytes:
        """Bytes that take a random way through the parse graph."""
        chunks: list[list[tuple[Field, int, int]]] = []  # per header: field, value, width
        last: dict[str, int] = {}  # header or stack name → its chunk
        name = self.parser.init_state
        for _ in range(STATES_MAX):
            if name is None:
                break
            state = self.states[name]
            for operation in state.operations:
                if isinstance(operation, Extract):
                    into = operation.into
                    owner = into.name if isinstance(into, Header) else into.stack.name
                    header_type = into.type if isinstance(into, Header) else _type_of(into)
                    last[owner] = len(chunks)
                    chunks.append([(f, self._value(f), 8 if f.varbit else f.width_bits) for f in header_type.fields])
            name = self._follow(state, chunks, last)
        bits = "".join(f"{value:0{width}b}" for chunk in chunks for _, value, width in chunk if width)
        head = int(bits or "0", 2).to_bytes(len(bits) // 8, "big") if bits else b""
        size = self.rng.choice((0, 1, 7, 60, 60, 200, 1000, 1500))
        for chunk in chunks:
            for each, value, _ in chunk:
                self.pool.note(each.name, value)
        return head + self.rng.randbytes(size)

    def _pause(self) -> bytes:
        """A PFC frame, now and then forged or cut short."""
        rng = self.rng
        times = {priority: rng.choice((0, 1, 30, 500, 65_535)) for priority in range(PRIORITIES)}
        data = bytearray(pfc_frame(rng.getrandbits(48), rng.choice((0, 1, 0x80, 255, 0xFFFF)), times))
        if rng.random() < 0.2:
            data[rng.randrange(len(data))] ^= rng.getrandbits(8)
        return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.2 else data)

    def _value(self, each: Field) -> int:
        width = 8 if each.varbit else each.width_bits
        if self.rng.random() < 0.3:
            return self.pool.draw(each.name, width)
        return self.rng.choice((self.rng.getrandbits(width), self.rng.randrange(min(1 << width, 16))))

    def _follow(self, state: State, chunks: list[list[tuple[Field, int, int]]], last: dict[str, int]) -> str | None:
        """Choose a transition and write its values into the fields that it looks at."""
        if not state.transitions or self.rng.random() < 0.15:
            return state.default
        chosen = self.rng.choice(state.transitions)
        assert chosen.values is not None
        assert chosen.masks is not None
        for part, value, mask in zip(state.key, chosen.values, chosen.masks, strict=True):
            source = part.source
            if isinstance(source, Lookahead) or not isinstance(source, FieldRef | LastField):
                continue
            owner = source.header.name if isinstance(source, FieldRef) else source.stack.name
            if owner in last:
                chunk = chunks[last[owner]]
                old = chunk[source.field.index]
                chunk[source.field.index] = (old[0], (old[1] & ~mask) | value, old[2])
        return chosen.next_state


def _type_of(into: StackNext | object):
    if isinstance(into, StackNext):
        return into.stack.type
    return into.stack.unions[0].headers[into.member_index].type  # type: ignore[attr-defined]


# --- control ------------------------------------------------------------------------------------------------------


class ControlMaker:
    def __init__(self, rng: random.Random, pool: Pool, ports: Sequence[int]) -> None:
        self.rng = rng
        self.pool = pool
        self.ports = ports
        self.oldest = 0

    def number(self) -> int:
        """Of a member or group. The window moves on: places of deleted ones serve again while entries name them."""
        self.oldest += self.rng.random() < 0.05
        return self.oldest + self.rng.randrange(4)

    def call(self, actions: tuple[Action, ...]) -> ActionCall:
        action = self.rng.choice(actions)
        args = tuple(
            self.rng.choice(self.ports)
            if p.width_bits == 9
            else self.rng.randrange(min(8, 1 << p.width_bits))
            if self.rng.random() < 0.7
            else self.rng.getrandbits(p.width_bits)
            for p in action.parameters
        )
        return ActionCall(action.name, args)

    def entry(self, table: Table) -> Entry:
        matches = tuple(self.match(key) for key in table.keys)
        looser = table.match in ("ternary", "range")
        return Entry(matches, self.entry_action(table), self.rng.randrange(5) if looser else 0)

    def entry_action(self, table: Table) -> EntryAction:
        if table.profile is None:
            return self.call(table.actions)
        if table.profile.has_groups and self.rng.random() < 0.6:
            return GroupRef(self.number())
        return MemberRef(self.number())

    def match(self, key: Key) -> Match:
        width, name = key.width_bits, key.target.field.name if isinstance(key.target, FieldRef) else key.name
        value = self.pool.draw(name, width)
        full = (1 << width) - 1
        if key.match == "exact":
            return Exact(value)
        if key.match == "lpm":
            length = self.rng.choice((0, width, width // 2, self.rng.randrange(width + 1)))
            return Lpm(value & (full ^ ((1 << (width - length)) - 1)), length)
        if key.match == "ternary":
            mask = self.rng.choice((0, full, self.rng.getrandbits(width)))
            return Ternary(value & mask, mask)
        other = self.pool.draw(name, width)
        return Range(min(value, other), max(value, other))

    def replicas(self) -> list[Replica]:
        return [
            Replica(self.rng.choice((*self.ports, 77)), self.rng.randrange(4)) for _ in range(self.rng.randrange(4))
        ]

    def meter(self) -> MeterConfig | None:
        if self.rng.random() < 0.2:
            return None
        cir = self.rng.choice((0, 1, 1000, 10**6, 10**9))
        pir = cir * self.rng.choice((1, 2))
        return MeterConfig(cir, self.rng.choice((0, 1, 5, 5000)), pir, self.rng.choice((0, 1, 10, 10000)))

    def port(self) -> PortConfig:
        rng = self.rng
        queues = tuple(
            QueueConfig(
                depth_packets=rng.choice((0, 0, 1, 4)),
                depth_bytes=rng.choice((0, 0, 0, 3000)),
                rate_pps=rng.choice((0, 0, 0, 100_000)),
            )
            for _ in range(PRIORITIES)
        )
        rate_bps = rng.choice((0, 10**6, 10**9, 10**11, 12_345_678))
        return PortConfig(
            up=rng.random() < 0.9,
            rate_bps=rate_bps,
            rate_pps=rng.choice((0, 0, 0, 3000)),
            delay_ns=rng.choice((0, 1000, 123_457)),
            loss=rng.choice((0.0, 0.0, 0.3, 1.0)),
            loss_seed=rng.randrange(4),
            overhead_bytes=rng.choice((0, 0, 24)),
            queues=queues,
            **(self.pause() if rate_bps else {}),
        )

    def pause(self) -> dict[str, int]:
        """Half of the ports that have a rate, which a pause needs, have flow control."""
        draw = self.rng.choice
        xoff = draw((0, 200, 2000))
        return {
            "pfc_classes": draw((0, 0, 1, 255, 0x81)),
            "pfc_xoff_bytes": xoff,
            "pfc_xon_bytes": draw((0, xoff // 2, xoff)),
            "pfc_headroom_bytes": draw((0, 300, 100_000)),
            "pfc_quanta": draw((200, 2000, 65_535)),
            "pfc_watchdog_ns": draw((0, 1, 100_000, 10_000_000)),
            "pfc_mac": self.rng.getrandbits(48),
        }
