"""The same random calls for both engines: entries, settings, packets and times. Each pair of results is compared."""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from p4c.entries import Entry
from p4c.model import Program
from p4c.model.actions import Action
from p4c.model.pipelines import ActionProfile, Table
from switch.engine import EngineControl, EngineError, PortConfig
from switch.stf.programs import make_engine
from tests.helpers.engines.random_inputs import PORTS, ControlMaker, PacketMaker, Pool

EVENTS_MAX = 5000
PROGRAMS = ("leaf.p4", "spine.p4", "steer.p4", "arithmetic.p4", "matching.p4", "stateful.p4", "parsing.p4")


def _shown(value: Any) -> str:
    if isinstance(value, Program):
        return value.name
    return value.hex() if isinstance(value, bytes) else repr(value)


class Handles(NamedTuple):
    reference: int
    native: int


class Pair:
    """Applies each call to both engines: both must return the same, or both refuse."""

    def __init__(self, seed: int, engines: Sequence[EngineControl] = ()) -> None:
        self.engines = engines or (make_engine("reference", seed), make_engine("native", seed))
        self.calls: list[str] = []

    def __call__(self, name: str, *args: Any) -> Any:
        """The result, or None when both engines refuse."""
        shown = ", ".join(_shown(a) for a in args)
        self.calls.append(f"{name}({shown})")
        results = []
        for i, engine in enumerate(self.engines):
            mine = [a[i] if isinstance(a, Handles) else a for a in args]
            try:
                results.append((True, getattr(engine, name)(*mine)))
            except EngineError as error:
                results.append((False, error))
        agree = results[0][0] == results[1][0] and (not results[0][0] or results[0][1] == results[1][1])
        assert agree, "\n".join(
            [
                f"reference: {results[0][1]!r}",
                f"native:    {results[1][1]!r}",
                "at the end of:",
                *(call[:300] for call in self.calls[-15:]),
            ]
        )
        return results[0][1] if results[0][0] else None

    def insert(self, table: str, entry: Entry) -> Handles | None:
        self.calls.append(f"insert_entry({table}, {entry!r})")
        handles: list[int | None] = []
        for engine in self.engines:
            try:
                handles.append(engine.insert_entry(table, entry))
            except EngineError:
                handles.append(None)
        reference, native = handles
        assert (reference is None) == (native is None), f"{table}: {entry!r}: handles {handles}"
        return None if reference is None or native is None else Handles(reference, native)


def sent_by_both(program: Program, frames: Sequence[bytes]) -> tuple[list[str], list[str]]:
    """Frames of the reference interpreter and of the native engine for frames that come in by port 1."""
    found = []
    for engine in (make_engine("reference"), make_engine("native")):
        engine.load(program)
        for port in (1, 2):
            engine.configure_port(port, PortConfig(), 0)
        for frame in frames:
            engine.receive(1, frame, 0)
        found.append([sent.frame.hex() for sent in engine.advance(0)])
    return found[0], found[1]


class Scenario:
    cells_compared = 1 << 20
    """Of each array of counters or registers."""

    def __init__(
        self,
        program: Program,
        seed: int,
        engines: Sequence[EngineControl] = (),
        rng: random.Random | None = None,
        ports: Sequence[int] = PORTS,
    ) -> None:
        self.rng = rng or random.Random(seed)
        self.program = program
        self.ports = ports
        self.pool = Pool(self.rng)
        self.packets = PacketMaker(program, self.rng, self.pool)
        self.control = ControlMaker(self.rng, self.pool, ports)
        self.pair = Pair(seed, engines)
        self.now_ns = self.rng.choice((0, 10**15))
        self.handles: dict[str, list[Handles]] = {}

    def load(self) -> None:
        self.pair("load", self.program)
        # Of each entry, the handle in either engine: engines number as they like, but for initial entries.
        self.handles = {t.name: [Handles(i, i) for i in range(len(t.entries))] for t in self.program.tables}

    def set_up(self) -> None:
        pair, rng, control = self.pair, self.rng, self.control
        self.load()
        for _ in range(30):
            self.packets.packet()  # so that the pool has values for the entries
        for port in self.ports:
            pair("configure_port", port, self.port_config(), self.now_ns)
        for group in (1, 2, 7):
            pair("set_multicast_group", group, control.replicas())
        for session in (0, 1, 3):
            # steer.p4 clones every clone into session 1: with two replicas that is COPIES_MAX packets.
            replicas = control.replicas()[:1] if session == 1 else control.replicas()
            pair("set_clone_session", session, replicas, rng.choice((0, 0, 20)), rng.choice((0, 0, 5)))
        self.populate()

    def port_config(self) -> PortConfig:
        return self.control.port()

    def populate(self) -> None:
        """Entries for all tables that a program has, members and groups, meters and registers."""
        pair, rng, control = self.pair, self.rng, self.control
        for profile in self.program.profiles:
            for member in range(3):
                pair("set_member", profile.name, member, control.call(self.actions(profile)))
            if profile.has_groups:
                pair("set_group", profile.name, 0, [(0, 1), (2, 2), (1, 1)])
                pair("set_group", profile.name, 1, [])
        for table in self.program.tables:
            for _ in range(rng.choice((0, 2, 8)) if table.keys and not table.const_entries else 0):
                self.insert(table)
            if rng.random() < 0.3 and self.may_change_default(table):
                pair("set_default_action", table.name, control.call(table.actions))
        for meter in self.program.meters:
            for index in range(min(meter.size, 6)):
                pair("set_meter", meter.name, index, control.meter())
        for register in self.program.registers:
            pair("write_register", register.name, rng.randrange(register.size), rng.getrandbits(register.width_bits))

    def actions(self, profile: ActionProfile) -> tuple[Action, ...]:
        return tuple(a for t in self.program.tables if t.profile is profile for a in t.actions)

    def may_change_default(self, table: Table) -> bool:
        """The P4Runtime server refuses what is constant; engines need not."""
        return table.profile is None and not (table.default is not None and table.default.const)

    def insert(self, table: Table) -> None:
        handles = self.pair.insert(table.name, self.control.entry(table))
        if handles is not None:
            self.handles[table.name].append(handles)

    def step(self) -> None:
        rng = self.rng
        if rng.random() < 0.75:
            for _ in range(rng.choice((1, 1, 3, 10))):
                self.pair("receive", rng.choice(self.ports), self.packets.packet(), self.now_ns)
        else:
            self.change()
        self.now_ns += rng.choice((0, 1, 999, 12_345, 1_000_000, 50_000_000))
        self.pair("next_event_ns")
        self.pair("advance", self.now_ns)

    def change(self) -> None:
        """Something that a control plane may do at any moment."""
        choice = self.rng.random()
        if choice < 0.2:
            self.pair("configure_port", self.rng.choice(self.ports), self.port_config(), self.now_ns)
        elif choice < 0.4 and self.program.profiles:
            self.change_profiles()
        elif choice < 0.85:
            self.change_entries()
        elif choice < 0.95:
            self.pair("set_running", self.rng.random() < 0.7, self.now_ns)
        else:
            self.pair("set_multicast_group", 1, self.control.replicas())

    def change_entries(self, among: Sequence[Table] = ()) -> None:
        tables = [t for t in among or self.program.tables if not t.const_entries]
        if not tables:
            return
        table = self.rng.choice(tables)
        handles = self.handles[table.name]
        choice = self.rng.random()
        if not handles or choice < 0.4:
            if table.keys:
                self.insert(table)
        elif choice < 0.6:
            self.pair("modify_entry", table.name, self.rng.choice(handles), self.control.entry_action(table))
        elif choice < 0.8:
            handle = handles.pop(self.rng.randrange(len(handles)))
            self.pair("delete_entry", table.name, handle)
        elif table.meter is not None:
            self.pair("set_direct_meter", table.name, self.rng.choice(handles), self.control.meter())
        elif self.may_change_default(table):
            self.pair("set_default_action", table.name, self.control.call(table.actions))

    def change_profiles(self) -> None:
        profile, number = self.rng.choice(self.program.profiles), self.control.number()
        choice = self.rng.randrange(6 if profile.has_groups else 4)
        if choice < 3:
            self.pair("set_member", profile.name, number, self.control.call(self.actions(profile)))
        elif choice == 3:
            self.pair("delete_member", profile.name, number)
        elif choice == 4:
            members = {self.control.number(): self.rng.randint(1, 3) for _ in range(self.rng.randrange(4))}
            self.pair("set_group", profile.name, number, list(members.items()))
        else:
            self.pair("delete_group", profile.name, number)

    def settle(self) -> None:
        """Let everything leave, then compare all state. A damaged program may send packets round for ever."""
        for _ in range(EVENTS_MAX):
            if (event_ns := self.pair("next_event_ns")) is None:
                break
            self.now_ns = max(self.now_ns, event_ns)
            self.pair("advance", self.now_ns)
        self.compare()

    def compare(self) -> None:
        pair = self.pair
        counters = [pair("port_counters", port, self.now_ns) for port in self.ports]
        for row, whole in zip(pair("sample", list(self.ports), self.now_ns), counters, strict=True):
            left_out = set(whole._asdict().items()) - set(row.items())
            assert {value for _, value in left_out} <= {0}
        for counter in self.program.counters:
            for index in range(min(counter.size, self.cells_compared)):
                pair("read_counter", counter.name, index)
            if not counter.direct:
                pair("read_packet_counts", counter.name, 0, counter.size)
        for register in self.program.registers:
            for index in range(min(register.size, self.cells_compared)):
                pair("read_register", register.name, index)
        for table in self.program.tables:
            if table.counter is not None:
                for handle in self.handles[table.name]:
                    pair("read_direct_counter", table.name, handle)

    def run(self, steps: int) -> None:
        self.set_up()
        for _ in range(steps):
            self.step()
        self.pair("set_running", True, self.now_ns)
        self.settle()
