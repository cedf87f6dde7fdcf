"""Errors of a user's classes: each names the user's file and line, the method and the rule."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from endpoint import plugins
from endpoint.mrc.algorithms import SEAMS, algorithms_of
from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.loss.loss_detection import PacketWindow
from endpoint.mrc.parameter import checked
from endpoint.mrc.seams.guards import USERS, GuardedCongestion, GuardedGranter, GuardedLossDetection, GuardedSelection
from endpoint.nic.config import AlgorithmError
from tests.helpers.transport import ev_set

TRAITS = PathTraits(8_000, 8_000, 400_000_000_000, 4096)
TEMPLATE = Path(__file__).parents[3] / "docs" / "templates" / "selection.py"
IMPORTS = """from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.congestion.granter import CreditGranter
from endpoint.mrc.loss.loss_detection import LossDetection
from endpoint.mrc.paths.selection import Selection
"""
"""A test's own text begins with line 5."""

SELECTION = """
class Mine(Selection):
    def next(self, usable):
        return self.evs.live[0].active[0]
"""
LOSS = """
class Mine(LossDetection):
    def overdue(self, flight, window_bytes):
        return []
"""
PROPERTY = """
class Mine(Congestion):
    asked = 0
    @property
    def {name}(self):
        self.asked += 1
        return {value}
    @{name}.setter
    def {name}(self, value):
        pass
    def on_ack(self, now_ns, acked_bytes, rtt_ns, marked, inflight_bytes):
        pass
"""
GRANTER = """
class Granter(CreditGranter):
    def on_packet_arrived(self, now_ns, qp, size, marked):
        self.due_ns = now_ns
    def grants(self, now_ns):
        self.due_ns = now_ns + 1
        return []

class Mine(Congestion):
    @classmethod
    def receiver(cls, path, values):
        return Granter()
    def on_ack(self, now_ns, acked_bytes, rtt_ns, marked, inflight_bytes):
        pass
"""

Load = Callable[[str, str], Any]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Makes a file and the class Mine in it, as the setting does."""

    def loaded(seam: str, text: str) -> Any:
        file = tmp_path / "mine.py"
        file.write_text(IMPORTS + text)
        plugins.add({seam: f"{file}:Mine"})
        return SEAMS[seam].pop(f"{file}:Mine")

    before = dict(USERS)
    yield loaded
    USERS.clear()
    USERS.update(before)


def congestion(kind: Any) -> None:
    guard = GuardedCongestion(kind, TRAITS, {}, {})
    guard.on_ack(1, 4096, None, False, 0)
    listener = guard.listener()
    listener.on_packet_lost(2, ev_set(8).planes[0].active[0], 4096, True)
    if listener.hears("on_timer"):
        listener.on_timer(3)


def selection(kind: Any) -> None:
    evs = ev_set(8)
    guard = GuardedSelection(kind, evs, Random(3), {})
    guard.next(0b1111)
    guard.listener().on_packet_lost(2, evs.planes[0].active[0], 4096, True)


def loss(kind: Any) -> None:
    GuardedLossDetection(kind, 8_000, 0, {}).overdue(PacketWindow(7, 64), 65_536)


def granter(kind: Any) -> None:
    guard = GuardedGranter(kind, TRAITS, {})
    guard.on_packet_arrived(1, 5, 4096, False)
    guard.grants(2)


SHIPPED = [(seam, name) for seam in SEAMS for name in algorithms_of(seam)]
"""Every algorithm, by its setting and its name."""


@pytest.mark.parametrize(("seam", "name"), SHIPPED, ids=[name for _, name in SHIPPED])
def test_a_users_class_may_derive_from_any_shipped_algorithm(load: Load, seam: str, name: str) -> None:
    """The compiled form refused such a class: "interpreted classes cannot inherit from compiled"."""
    shipped = algorithms_of(seam)[name]
    kind = load(
        seam,
        f"""
from {shipped.__module__} import {shipped.__name__}

class Mine({shipped.__name__}):
    def on_packet_lost(self, now_ns, path, size, proved):
        self.told = (now_ns, proved)
        super().on_packet_lost(now_ns, path, size, proved)
""",
    )
    values = checked(seam, "mine", kind.parameters, {})
    guard: Any
    if seam == "congestion":
        guard = GuardedCongestion(kind, TRAITS, values, {})
    elif seam == "selection":
        guard = GuardedSelection(kind, ev_set(8), Random(3), values)
        assert guard.next(0b1111) is not None
    else:
        guard = GuardedLossDetection(kind, 8_000, 0, values)
        assert guard.overdue(PacketWindow(7, 64), 65_536) == []
    guard.listener().on_packet_lost(2, ev_set(8).planes[0].active[0], 4096, True)
    assert guard._guarded.object.told == (2, True)


RUNS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "Granter": ("congestion", granter),
    "Congestion": ("congestion", congestion),
    "Selection": ("selection", selection),
    "LossDetection": ("loss", loss),
}
"""By what a text has, the setting that takes its class, and a run with it."""


def error_of(load: Load, text: str) -> str:
    """The error that ends a run with this class, without the folder of its file."""
    setting, run = next(found for word, found in RUNS.items() if word in text)
    kind = load(setting, text)
    with pytest.raises(AlgorithmError) as found:
        run(kind)
    return str(found.value).rpartition("/")[2]


ACK = "def on_ack(self, now_ns, acked_bytes, rtt_ns, marked, inflight_bytes):"
WINDOW = f"""
class Mine(Congestion):
    {ACK} self.window_bytes LINE
"""
NEGATIVE = PROPERTY.format(name="window_bytes", value="2 - self.asked")
DUE = "    due_ns = property(lambda self: 1 / 0)\n    def grants"
RAISES = {
    "mine.py:11: ZeroDivisionError: integer division or modulo by zero (in congestion Mine.window_bytes)": (
        PROPERTY.format(name="window_bytes", value="4096 // (2 - self.asked)")
    ),
    "mine.py:11: AttributeError: 'Mine' object has no attribute 'rate' (in congestion Mine.pacing_bps)": (
        PROPERTY.format(name="pacing_bps", value="self.rate")
    ),
    "mine.py:11: IndexError: list index out of range (in congestion Mine.ports_open)": (
        PROPERTY.format(name="ports_open", value="[][0]")
    ),
    "mine.py:9: ZeroDivisionError: division by zero (in selection Mine.wanted_probes)": (
        SELECTION + "    wanted_probes = property(lambda self: 1 / 0, lambda self, value: None)\n"
    ),
    "mine.py:9: ZeroDivisionError: division by zero (in loss Mine.window_ns)": (
        LOSS + "    window_ns = property(lambda self: 1 / 0, lambda self, value: None)\n"
    ),
    "mine.py:9: ZeroDivisionError: integer division or modulo by zero (in loss Mine": (  # its base writes first
        LOSS + "    newest_ns = property(lambda self: -1, lambda self, value: 1 // (value + 1))\n"
    ),
    "mine.py:9: ZeroDivisionError: division by zero (in congestion Granter.due_ns)": (
        GRANTER.replace("    def grants", DUE).replace("class Granter(CreditGranter)", "class Granter")
    ),
}
MUST = "must be an integer from 0 to 281474976710656"
REFUSED = {
    f"mine.py:7: congestion Mine.on_ack: window_bytes {MUST} (got -7)": WINDOW.replace("LINE", "= -7"),
    "mine.py:8: congestion Mine.on_packet_lost: pacing_bps must be an integer from 0 to": (
        WINDOW.replace("LINE", "+= 0\n    def on_packet_lost(self, *_): self.pacing_bps = -1")
    ),
    "mine.py:8: congestion Mine.on_timer: it must set due_ns later than 3 (got 3)": (
        WINDOW.replace("LINE", "+= 0\n    def on_timer(self, now_ns): self.due_ns = now_ns")
    ),
    "mine.py:8: congestion Mine.on_timer: due_ns must be an integer from 0 to": (
        WINDOW.replace("LINE", "+= 0\n    def on_timer(self, now_ns): self.due_ns = -1")
    ),
    f"mine.py:6: congestion Mine.on_packet_lost: window_bytes {MUST}": NEGATIVE,
    f"mine.py:6: congestion Mine.on_packet_lost: window_bytes {MUST} (got": (
        NEGATIVE + "    on_packet_lost = Congestion.on_packet_lost\n"
    ),
    "mine.py:7: selection Mine.next: wanted_probes must be a list of EvPaths of evs (got [5])": (
        SELECTION.replace("        return", "        self.wanted_probes = [5]; return")
    ),
    "mine.py:9: selection Mine.on_packet_lost: wanted_probes must be a list of EvPaths of evs (got [5])": (
        SELECTION + "    def on_packet_lost(self, *_): self.wanted_probes = [5]\n"
    ),
    "mine.py:7: loss Mine.overdue: window_ns must be an integer from 1 to 281474976710656 (got 0)": (
        LOSS.replace("return []", "self.window_ns = 0; return []")
    ),
    "mine.py:7: congestion Granter.on_packet_arrived: due_ns must be an integer of at least 0 (got -1)": (
        GRANTER.replace("self.due_ns = now_ns\n", "self.due_ns = -1\n")
    ),
    "mine.py:9: congestion Granter.grants: it must set due_ns later than 2 (got 2)": (
        GRANTER.replace("now_ns + 1", "now_ns")
    ),
    "mine.py:9: congestion Granter.grants: a grant must be (qp, bytes) with a positive multiple of 256 bytes": (
        GRANTER.replace("[]", "[(1, 100)]")
    ),
    "mine.py:9: congestion Granter.grants: it must return a list of": GRANTER.replace("[]", "None"),
    "mine.py:14: congestion Mine.receiver: due_ns must be an integer of at least 0 (got None)": (
        GRANTER.replace("return Granter()", "return 5")
    ),
}
"""What is wrong is said of the line, or of the method that was asked last."""


@pytest.mark.parametrize("said", [*RAISES, *REFUSED])
def test_what_raises_or_is_wrong_is_named_with_its_line_and_method(load: Load, said: str) -> None:
    assert error_of(load, (RAISES | REFUSED)[said]).startswith(said)


def test_a_window_that_is_no_integer_names_the_method_that_set_it(load: Load) -> None:
    """A compiled base class refuses the number at once, the guard after the method: both name line and method."""
    found = error_of(load, WINDOW.replace("LINE", "*= 1.01"))
    assert found.startswith("mine.py:7: ")
    assert "congestion Mine.on_ack" in found


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (WINDOW.replace(ACK, "def on_ack(self):").replace("LINE", "= 1"), 7, "congestion Mine.on_ack)"),
        (SELECTION.replace("self, usable", "self"), 7, "selection Mine.next)"),
        (SELECTION + "    def __init__(self):\n        pass\n", 9, "selection Mine.__init__)"),
        (LOSS + "    def __init__(self, base_rtt_ns, jitter_ns, values):\n        pass\n", 9, "Mine.__init__)"),
        (GRANTER.replace("def grants(self, now_ns)", "def grants(self)"), 9, "congestion Granter.grants)"),
        (GRANTER.replace("def grants", "def given"), 7, "congestion Granter.grants)"),
    ],
)
def test_a_method_that_cannot_be_called_names_its_line(load: Load, text: str, line: int, said: str) -> None:
    found = error_of(load, text)
    assert found.startswith(f"mine.py:{line}: ")
    assert found.endswith(said)


def test_a_class_of_a_decorated_method_names_the_method(load: Load) -> None:
    text = SELECTION.replace("    def", "    @functools.cache\n    def").replace("self.evs.live[0].active[0]", "7")
    found = error_of(load, "\nimport functools\n" + text)
    assert found.startswith("mine.py:9: selection Mine.next: it must return an EvPath")


FOREIGN = """
class Mine(Selection):
    made = []
    def __init__(self, evs, rng, values):
        super().__init__(evs, rng, values)
        self.made.append(evs)
    def next(self, usable):
        return self.made[0].live[0].active[0]
    def on_packet_lost(self, now_ns, path, size, proved):
        self.wanted_probes = [self.made[0].live[0].active[0]]
"""


def test_an_ev_of_another_queue_pair_is_refused_as_next_and_as_probe(load: Load) -> None:
    """Its packets would leave with this queue pair's numbers on the other one's paths, perhaps to another host."""
    kind = load("selection", FOREIGN)
    first, second = ev_set(8), ev_set(8)
    own, other = (GuardedSelection(kind, evs, Random(3), {}) for evs in (first, second))
    path = first.live[0].active[0]
    assert own.next(0b1111) is path
    own.listener().on_packet_lost(2, path, 4096, True)
    assert own.wanted_probes == [path]
    with pytest.raises(AlgorithmError) as found:
        other.next(0b1111)
    said = f"selection Mine.next: it must return an EvPath of this queue pair's evs, or None (EV {path.ev:#x} is not)"
    assert str(found.value).endswith(f"mine.py:11: {said}")
    with pytest.raises(AlgorithmError, match=r"mine\.py:13: selection Mine\.on_packet_lost: wanted_probes must be a"):
        other.listener().on_packet_lost(2, path, 4096, True)


def test_a_selection_heeds_signals_by_its_class_alone(load: Load) -> None:
    """The endpoint reads the class once, so the object's own value would be ignored."""
    text = SELECTION + "    def __init__(self, *given): super().__init__(*given); self.heeds_signals = VALUE\n"
    assert error_of(load, text.replace("VALUE", "False")) == (
        "mine.py:9: selection Mine.__init__: heeds_signals must be set in the class body, as a class attribute"
        " (the class has True, the object False)"
    )
    selection(load("selection", text.replace("VALUE", "True")))


def test_the_template_of_a_selection_counts_packets_that_leave_not_those_it_is_asked_for(load: Load) -> None:
    """Probes ask too, and an answer whose port the congestion control has closed is discarded."""
    guard = GuardedSelection(load("selection", TEMPLATE.read_text()), ev_set(8), Random(3), {"rest": 2})
    path = guard.next(-1)
    assert path is not None
    guard.next(0b0001)
    guard.listener().on_packet_sent(1, path, 4096)
    assert guard._guarded.object.sent == 1
