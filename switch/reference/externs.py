"""Counters, meters and registers: their cells and what the data plane does to them."""

from dataclasses import dataclass

from p4c.model import Program
from p4c.model.memory import word_count
from switch import rules
from switch.engine import CounterValue, MeterConfig

GREEN, YELLOW, RED = 0, 1, 2
_M64 = (1 << 64) - 1
_SECOND_NS = 1_000_000_000
_PAGE_CELLS = 512


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


class Cells:
    """An array of numbers that are not negative, each in whole 64-bit words as in the native engine. Like there, pages
    that nothing was written to take no memory."""

    def __init__(self, size: int, width_bits: int) -> None:
        self._size = size
        self._step = 8 * word_count(width_bits)
        self._pages: dict[int, bytearray] = {}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> int:
        page = self._pages.get(index // _PAGE_CELLS)
        start = index % _PAGE_CELLS * self._step
        return 0 if page is None else int.from_bytes(page[start : start + self._step], "little")

    def __setitem__(self, index: int, value: int) -> None:
        page = self._pages.get(index // _PAGE_CELLS)
        if page is None:
            room = min(_PAGE_CELLS, self._size - index // _PAGE_CELLS * _PAGE_CELLS)
            page = self._pages[index // _PAGE_CELLS] = bytearray(room * self._step)
        start = index % _PAGE_CELLS * self._step
        page[start : start + self._step] = value.to_bytes(self._step, "little")


class Counters:
    """An indirect counter."""

    def __init__(self, size: int) -> None:
        self.packets, self.bytes = Cells(size, 64), Cells(size, 64)

    def __len__(self) -> int:
        return len(self.packets)

    def count(self, index: int, size_bytes: int) -> None:
        self.packets[index] = (self.packets[index] + 1) & _M64
        self.bytes[index] = (self.bytes[index] + size_bytes) & _M64

    def read(self, index: int) -> CounterValue:
        return CounterValue(self.packets[index], self.bytes[index])

    def write(self, index: int, value: CounterValue) -> None:
        self.packets[index], self.bytes[index] = value.packets & _M64, value.bytes & _M64


class Meters:
    """An indirect meter. Only cells that the control plane has configured exist; the others are green."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._configured: dict[int, MeterCell] = {}

    def __len__(self) -> int:
        return self._size

    def configure(self, index: int, config: MeterConfig | None, now_ns: int) -> None:
        cell = MeterCell()
        cell.configure(config, now_ns)
        self._configured[index] = cell

    def colour(self, index: int, size: int, now_ns: int) -> int:
        cell = self._configured.get(index)
        return GREEN if cell is None else cell.colour(size, now_ns)


class Externs:
    """The arrays of a program, by name. Direct counters and meters live in the table entries instead."""

    def __init__(self, program: Program) -> None:
        self.counters = {c.name: Counters(c.size) for c in program.counters if not c.direct}
        self.meters = {m.name: Meters(m.size) for m in program.meters if not m.direct}
        self.registers = {r.name: Cells(r.size, r.width_bits) for r in program.registers}
