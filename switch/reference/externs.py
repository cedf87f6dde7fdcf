"""Counters, meters and registers: their cells and what the data plane does to them."""

from __future__ import annotations

from dataclasses import dataclass

from switch import rules
from switch.engine import CounterValue, MeterConfig
from switch.model.program import Program

GREEN, YELLOW, RED = 0, 1, 2
_M64 = (1 << 64) - 1
_SECOND_NS = 1_000_000_000


@dataclass(slots=True)
class CounterCell:
    packets: int = 0
    bytes: int = 0

    def count(self, size_bytes: int) -> None:
        self.packets = (self.packets + 1) & _M64
        self.bytes = (self.bytes + size_bytes) & _M64

    def read(self) -> CounterValue:
        return CounterValue(self.packets, self.bytes)

    def write(self, value: CounterValue) -> None:
        self.packets, self.bytes = value.packets & _M64, value.bytes & _M64


class _Bucket:
    """Tokens that arrive at `rate` a second, counted from time 0 so that rounding does not add up."""

    __slots__ = ("burst", "last", "rate", "tokens")

    def __init__(self, rate: int, burst: int, now_ns: int) -> None:
        self.rate = rate
        self.burst = burst
        self.tokens = burst
        self.last = now_ns * rate // _SECOND_NS

    def take(self, size: int, now_ns: int) -> bool:
        total = now_ns * self.rate // _SECOND_NS
        self.tokens = min(self.tokens + total - self.last, self.burst)
        self.last = total
        if self.tokens < size:
            return False
        self.tokens -= size
        return True


class MeterCell:
    """A colour-blind two-rate three-colour marker (RFC 2698), the peak bucket first as in bm_sim/meters.cpp: a packet
    that finds too few peak tokens takes none, and one that finds too few committed tokens has taken peak tokens."""

    __slots__ = ("committed", "config", "peak")

    def __init__(self) -> None:
        self.config: MeterConfig | None = None

    def configure(self, config: MeterConfig | None, now_ns: int) -> None:
        rules.check_meter(config)
        if config is not None:
            self.peak = _Bucket(config.pir, config.pburst, now_ns)
            self.committed = _Bucket(config.cir, config.cburst, now_ns)
        self.config = config

    def colour(self, size: int, now_ns: int) -> int:
        if self.config is None:
            return GREEN
        if not self.peak.take(size, now_ns):
            return RED
        return GREEN if self.committed.take(size, now_ns) else YELLOW


class Externs:
    """The arrays of a program, by name. Direct counters and meters live in the table entries instead."""

    def __init__(self, program: Program) -> None:
        self.counters = {c.name: [CounterCell() for _ in range(c.size)] for c in program.counters if not c.direct}
        self.meters = {m.name: [MeterCell() for _ in range(m.size)] for m in program.meters if not m.direct}
        self.registers = {r.name: [0] * r.size for r in program.registers}
