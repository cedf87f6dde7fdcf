"""The same random life for the reference interpreter and the native engine, which must agree to the bit.

Everything is drawn from one seed: entries for whatever tables a program has, members and groups, meters, replicas,
port configurations, and frames made from samples by changing, cutting and extending them. Compared: every frame with
its port and time, every counter of the ports, counters, direct counters, registers, and which calls are refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from p4c.entries import ActionCall, Entry, EntryAction, Exact, GroupRef, Lpm, Match, MemberRef, Range, Ternary
from p4c.model import Program
from p4c.model.actions import Action
from p4c.model.pipelines import Key, Table
from switch.engine import Engine, EngineError, MeterConfig, PortConfig, QueueConfig, Replica
from switch.native.engine import NativeEngine
from switch.reference.engine import ReferenceEngine
from switch.reference.pfc import pfc_frame

PORTS = (0, 1, 2, 3, 510)
CELLS_COMPARED = 72  # of each array of counters or registers: ports 0..8 of eight classes


class Pair:
    """Two engines; a call must have the same outcome on both."""

    def __init__(self, program: Program, seed: int, engines: tuple[Engine, Engine] | None = None) -> None:
        """The interpreter and the native engine, or two others."""
        self.seed = seed
        self.engines = engines or (ReferenceEngine(seed=seed), NativeEngine(seed=seed))
        for engine in self.engines:
            engine.load(program)

    def both(self, what: str, call: Callable[[Engine], Any]) -> Any:
        outcomes = [self._outcome(call, engine) for engine in self.engines]
        assert outcomes[0] == outcomes[1], f"seed {self.seed}: {what}: reference {outcomes[0]}, native {outcomes[1]}"
        return outcomes[0]

    @staticmethod
    def _outcome(call: Callable[[Engine], Any], engine: Engine) -> Any:
        try:
            return call(engine)
        except EngineError:
            return EngineError

    def close(self) -> None:
        for engine in self.engines:
            if isinstance(engine, NativeEngine):
                engine.close()


class Life:
    def __init__(
        self,
        program: Program,
        seed: int,
        frames: Sequence[bytes],
        values: Sequence[int] = (),
        engines: tuple[Engine, Engine] | None = None,
    ) -> None:
        self.program = program
        self.random = random.Random(seed)
        self.frames = list(frames)
        self.values = [0, 1, 2, 3, *values]
        self.pair = Pair(program, seed, engines)
        self.now_ns = 0
        self.handles: list[tuple[Table, list[int]]] = []  # an entry's handle in either engine

    # --- what is drawn ---

    def value(self, width_bits: int) -> int:
        mask = (1 << width_bits) - 1
        if self.random.random() < 0.8:
            return self.random.choice(self.values) & mask
        return self.random.choice((mask, self.random.getrandbits(width_bits)))

    def match(self, key: Key) -> Match:
        width = key.width_bits
        value = self.value(width)
        full = (1 << width) - 1
        if key.match == "lpm":
            prefix_len = self.random.choice((0, width, min(48, width), self.random.randint(0, width)))
            return Lpm(value & (full ^ full >> prefix_len), prefix_len)
        if key.match == "ternary":
            mask = self.random.choice((0, full, self.random.getrandbits(width)))
            return Ternary(value & mask, mask)
        if key.match == "range":
            low, high = sorted((value, self.value(width)))
            return Range(low, high)
        return Exact(value)

    def call(self, action: Action) -> ActionCall:
        return ActionCall(action.name, tuple(self.value(parameter.width_bits) for parameter in action.parameters))

    def target(self, table: Table) -> EntryAction:
        if table.profile is None or self.random.random() < 0.1:
            return self.call(self.random.choice(table.actions))
        if table.profile.selector and self.random.random() < 0.7:
            return GroupRef(self.random.randint(1, 3))
        return MemberRef(self.random.randint(1, 4))

    def frame(self) -> bytes:
        data = bytearray(self.random.choice(self.frames))
        for _ in range(self.random.choice((0, 0, 1, 2, 6))):
            if data:
                data[self.random.randrange(len(data))] = self.random.choice((0, 1, 255, self.random.getrandbits(8)))
        if self.random.random() < 0.15:
            del data[self.random.randrange(len(data) + 1) :]
        if self.random.random() < 0.1:
            data += self.random.randbytes(self.random.randint(1, 300))
        return bytes(data)

    def port_config(self) -> PortConfig:
        draw = self.random.choice
        queues = [QueueConfig(draw((0, 0, 2, 5)), draw((0, 0, 400, 3000)), draw((0, 0, 0, 200_000))) for _ in range(8)]
        rate_bps = draw((0, 8_000_000, 100_000_000, 99_999_937))
        return PortConfig(
            up=self.random.random() < 0.9,
            rate_bps=rate_bps,
            rate_pps=draw((0, 0, 0, 77_777)),
            delay_ns=draw((0, 1000, 123_456)),
            loss=draw((0.0, 0.0, 0.25, 1.0)),
            loss_seed=draw((0, 5)),
            overhead_bytes=draw((0, 0, 24)),
            queues=tuple(queues),
            **(self.pfc_config() if rate_bps else {}),
        )

    def pfc_config(self) -> dict[str, int]:
        """Half of the ports that have a rate, which a pause needs, have flow control."""
        draw = self.random.choice
        xoff = draw((0, 200, 2000))
        return {
            "pfc_classes": draw((0, 0, 1, 255, 0x81)),
            "pfc_xoff_bytes": xoff,
            "pfc_xon_bytes": draw((0, xoff // 2, xoff)),
            "pfc_headroom_bytes": draw((0, 300, 100_000)),
            "pfc_quanta": draw((200, 2000, 65_535)),
            "pfc_watchdog_ns": draw((0, 1, 100_000, 10_000_000)),
            "pfc_mac": self.random.getrandbits(48),
        }

    def control_frame(self) -> bytes:
        """A PFC frame, now and then forged or cut short."""
        times = {priority: self.random.choice((0, 1, 30, 500, 65_535)) for priority in range(8)}
        data = bytearray(pfc_frame(self.random.getrandbits(48), self.random.choice((0, 1, 0x80, 255, 0xFFFF)), times))
        if self.random.random() < 0.2:
            data[self.random.randrange(len(data))] ^= self.random.getrandbits(8)
        if self.random.random() < 0.2:
            del data[self.random.randrange(len(data)) :]
        return bytes(data)

    def first_port_config(self) -> PortConfig:
        return PortConfig() if self.random.random() < 0.5 else self.port_config()

    # --- what is done ---

    def populate(self) -> None:
        both, random_ = self.pair.both, self.random
        for port in PORTS:
            config = self.first_port_config()
            both("port", lambda e, port=port, config=config: e.configure_port(port, config, 0))
        for number in range(1, 4):
            replicas = [
                Replica(random_.choice((*PORTS, 77)), random_.randint(0, 9)) for _ in range(random_.randint(0, 3))
            ]
            both("group", lambda e, n=number, r=replicas: e.set_multicast_group(n, r))
            cut = random_.choice((0, 40))
            both("session", lambda e, n=number, r=replicas, cut=cut: e.set_clone_session(n, r, cut))
        self.populate_tables()

    def populate_tables(self) -> None:
        both, random_ = self.pair.both, self.random
        for profile in self.program.profiles:
            self._fill_profile(profile.name)
        for table in self.program.tables:
            if table.keys and not table.const_entries:
                for _ in range(random_.randint(0, 6)):
                    self.insert(table)
        for meter in self.program.meters:
            for index in range(min(meter.size, 4)):
                cir = random_.choice((0, 100, 10_000))
                config = MeterConfig(cir, random_.choice((1, 10, 2000)), cir * 2, random_.choice((2, 20, 4000)))
                both("meter", lambda e, m=meter, i=index, c=config: e.set_meter(m.name, i, c))

    def _fill_profile(self, name: str) -> None:
        tables = [table for table in self.program.tables if table.profile and table.profile.name == name]
        actions = [action for table in tables for action in table.actions]
        for member in range(1, 5):
            if actions and self.random.random() < 0.8:
                call = self.call(self.random.choice(actions))
                self.pair.both("member", lambda e, m=member, c=call: e.set_member(name, m, c))
        for group in range(1, 4):
            members = [(self.random.randint(1, 4), self.random.randint(1, 3)) for _ in range(self.random.randint(0, 4))]
            members = list(dict(members).items())
            self.pair.both("members", lambda e, g=group, m=members: e.set_group(name, g, m))

    def insert(self, table: Table) -> None:
        matches = tuple(self.match(key) for key in table.keys)
        ranked = table.match not in ("exact", "lpm")
        entry = Entry(matches, self.target(table), self.random.randint(1, 5) if ranked else 0)
        handles = [self.pair._outcome(lambda e: e.insert_entry(table.name, entry), e) for e in self.pair.engines]
        assert (handles[0] is EngineError) == (handles[1] is EngineError), f"insert {entry}: {handles}"
        if handles[0] is not EngineError:
            self.handles.append((table, handles))

    def both_with(self, what: str, handles: Sequence[int], call: Callable[[Engine, int], Any]) -> None:
        handle_of = dict(zip(map(id, self.pair.engines), handles, strict=True))
        self.pair.both(what, lambda e: call(e, handle_of[id(e)]))

    def change(self) -> None:
        """Something that a control plane may do at any moment."""
        kind = self.random.random()
        if kind < 0.3 and self.handles:
            table, handles = self.handles.pop(self.random.randrange(len(self.handles)))
            self.both_with("delete", handles, lambda e, handle: e.delete_entry(table.name, handle))
        elif kind < 0.5 and self.handles:
            table, handles = self.random.choice(self.handles)
            target = self.target(table)
            self.both_with("modify", handles, lambda e, handle: e.modify_entry(table.name, handle, target))
        elif kind < 0.7 and self.program.tables:
            table = self.random.choice(self.program.tables)
            if table.keys and not table.const_entries:
                self.insert(table)
        elif kind < 0.9:
            port, config = self.random.choice(PORTS), self.port_config()
            self.pair.both("port", lambda e: e.configure_port(port, config, self.now_ns))
        else:
            running = self.random.random() < 0.7
            self.pair.both("running", lambda e: e.set_running(running, self.now_ns))

    def live(self, packets: int, populate: Callable[[Life], None] | None = None) -> int:
        """Returns how many frames came out. `populate` installs entries of its own instead of random ones."""
        if populate is None:
            self.populate()
        else:
            populate(self)
        came_out = 0
        for _ in range(packets):
            port = self.random.choice(PORTS)
            frame = self.control_frame() if self.random.random() < 0.1 else self.frame()
            self.pair.both("receive", lambda e, p=port, f=frame: e.receive(p, f, self.now_ns))
            self.now_ns += self.random.choice((0, 0, 1, 999, 10_000, 1_000_000))
            if self.random.random() < 0.1:
                self.change()
            if self.random.random() < 0.3:
                assert self.pair.both("next event", lambda e: e.next_event_ns()) is not EngineError
                came_out += len(self.pair.both("frames", lambda e: e.advance(self.now_ns)))
        self.pair.both("running", lambda e: e.set_running(True, self.now_ns))
        self.now_ns += 10**12
        came_out += len(self.pair.both("last frames", lambda e: e.advance(self.now_ns)))
        self.compare_state()
        self.pair.close()
        return came_out

    def compare_state(self) -> None:
        both = self.pair.both
        for port in PORTS:
            both(f"counters of port {port}", lambda e, p=port: e.port_counters(p, self.now_ns))
        for counter in self.program.counters:
            for index in range(min(counter.size, CELLS_COMPARED)):
                both(f"{counter.name}[{index}]", lambda e, c=counter, i=index: e.read_counter(c.name, i))
        for register in self.program.registers:
            for index in range(min(register.size, CELLS_COMPARED)):
                both(f"{register.name}[{index}]", lambda e, r=register, i=index: e.read_register(r.name, i))
        for table, handles in self.handles:
            if table.counter:
                self.both_with(table.name, handles, lambda e, handle, t=table: e.read_direct_counter(t.name, handle))
