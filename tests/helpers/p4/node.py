"""A switch on a virtual clock: one engine, one program, the entries that a plan would give it."""

from dataclasses import dataclass, field
from typing import Any

from p4c.entries import ActionCall, Entry, Exact, Lpm, Match
from p4c.model import Program
from switch.engine import MeterConfig, PortConfig, Transmitted

NO_TRIM, TRIMMABLE, RETRANSMIT, TRIMMED, LAST_HOP, CONTROL, ROCE = range(7)
DSCP = {NO_TRIM: 0, TRIMMABLE: 10, RETRANSMIT: 12, TRIMMED: 20, LAST_HOP: 22, CONTROL: 46, ROCE: 26}
DATA_PRIORITY, HIGH_PRIORITY = 0, 7
PATIENCE_US = 10_000
DROP_REASONS = (
    "not_ipv6_drops", "hop_limit_drops", "list_ended_drops", "unknown_usid_drops", "no_route_drops",
    "no_next_hop_drops", "queue_limit_drops", "trimmed_share_drops",
)  # fmt: skip


def destination(port: int) -> str:
    """An address that `Node.wire` routes out of this port."""
    return f"2001:db8:{port:x}::1"


@dataclass
class Node:
    engine: Any  # an engine; tests of live switches look into theirs
    program: Program
    now_ns: int = 1_000_000_000  # long after start: an account of age zero is then stale, as on an old switch
    sent: list[Transmitted] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine.load(self.program)
        p = self.program
        items: list[Any] = [*p.tables, *p.actions, *p.counters, *p.registers, *p.meters]
        for item in items:
            self._names[item.name.rpartition(".")[2]] = item.name

    # --- control ---

    def add(self, table: str, matches: tuple[Match, ...], action: str, *args: int) -> int:
        call = ActionCall(self._names[action], args)
        return int(self.engine.insert_entry(self._names[table], Entry(matches, call)))

    def default(self, table: str, action: str, *args: int) -> None:
        self.engine.set_default_action(self._names[table], ActionCall(self._names[action], args))

    def limit(self, port: int, traffic_class: int, action: str, packets: int, patience_us: int = PATIENCE_US) -> None:
        self.add("queue_limit", (Exact(port), Exact(traffic_class)), action, packets, patience_us)

    def share(self, port: int, packets_per_s: int, burst: int = 16) -> None:
        config = MeterConfig(packets_per_s, burst, packets_per_s, burst)
        self.engine.set_meter(self._names["trimmed_meter"], port, config)

    def wire(self, *ports: int, config: PortConfig | None = None) -> None:
        """Ports up, a next hop and a route behind each, and the classes by DSCP."""
        for port in ports:
            self.engine.configure_port(port, config or PortConfig(), self.now_ns)
            self.add("next_hop", (Exact(port),), "set_adjacency", port, 0x02000000AA00 + port, 0x020000000000 + port)
            self.add("ipv6_route", (Lpm((0x20010DB8 << 96) | (port << 80), 48),), "set_next_hop", port)
        for traffic_class, dscp in DSCP.items():
            high = traffic_class in (TRIMMED, LAST_HOP, CONTROL)
            priority = HIGH_PRIORITY if high else DATA_PRIORITY
            self.add("dscp_to_class", (Exact(dscp),), "set_class", traffic_class, priority)

    def port(self, port: int, config: PortConfig) -> None:
        self.engine.configure_port(port, config, self.now_ns)

    # --- what it shows ---

    def counter(self, name: str, port: int, traffic_class: int) -> int:
        return int(self.engine.read_counter(self._names[name], port * 8 + traffic_class).packets)

    def account(self, port: int, priority: int = DATA_PRIORITY) -> int:
        """Packets waiting, as the program believes."""
        return int(self.engine.read_register("queue_account", port * 8 + priority)) & 0xFFFF

    # --- time and packets ---

    def receive(self, port: int, frame: bytes) -> None:
        self.engine.receive(port, frame, self.now_ns)
        self.sent += self.engine.advance(self.now_ns)

    def run(self, duration_ns: int) -> None:
        self.now_ns += duration_ns
        self.sent += self.engine.advance(self.now_ns)

    def take(self) -> list[Transmitted]:
        """Everything sent since the last take."""
        taken, self.sent = self.sent, []
        return taken

    def drain(self, duration_ns: int = 10_000_000_000) -> list[Transmitted]:
        """Let every queue run empty."""
        self.run(duration_ns)
        return self.take()
