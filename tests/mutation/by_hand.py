"""Mutants chosen by hand, in the C runtime of the native engine and in the page: no syntax tree of ours reads these."""

from pathlib import Path

from tests.mutation.mutants import Mutant

C, PAGE = "C runtime", "page"
TESTS = {
    C: (
        "tests/switch/native/test_flow_control.py",
        "tests/switch/native/test_native_engine.py",
        "tests/switch/native/test_native_fabric.py",
        "tests/switch/native/test_native_limits.py",
        "tests/switch/stf",
        "tests/switch/differential",
    ),
    PAGE: ("tests/page/test_export.py", "tests/page/test_page.py"),
}
DEVICE, RUN = "switch/native/runtime/device", "page/browser/run"
BY_HAND: dict[str, list[tuple[str, str, str]]] = {
    C: [
        (f"{DEVICE}/pfc.c", "length >= LEAST_BYTES", "length > LEAST_BYTES"),
        (f"{DEVICE}/pfc.c", "now_ns >= pause->until_ns", "now_ns > pause->until_ns"),
        (f"{DEVICE}/pfc.c", "<= pfc->xoff_bytes + pfc->headroom_bytes", "< pfc->xoff_bytes + pfc->headroom_bytes"),
        (f"{DEVICE}/pfc.c", "held <= pfc->xoff_bytes ||", "held < pfc->xoff_bytes ||"),
        (f"{DEVICE}/pfc.c", "began_ns > port->pfc.watchdog_ns", "began_ns >= port->pfc.watchdog_ns"),
        (f"{DEVICE}/passes.c", "p->passes < PASSES_MAX", "p->passes <= PASSES_MAX"),
        (f"{DEVICE}/passes.c", "p->length > FRAME_MAX", "p->length >= FRAME_MAX"),
        (f"{DEVICE}/device.c", "number >= DROP_PORT", "number > DROP_PORT"),
        (f"{DEVICE}/passes.c", "counters.rx_bytes += length", "counters.rx_bytes -= length"),
        (f"{DEVICE}/access.c", "handle >= t->used", "handle > t->used"),
        (f"{DEVICE}/access.c", "index < d->program->counter[", "index <= d->program->counter["),
        (f"{DEVICE}/recorder.c", "record.t_ns >= r->stop_ns", "record.t_ns > r->stop_ns"),
    ],
    PAGE: [
        (f"{RUN}/search.js", "lines[middle].t_ns <= t", "lines[middle].t_ns < t"),
        (f"{RUN}/fold.js", '(line.state === "end" ? -1 : 1)', '(line.state === "end" ? 1 : -1)'),
        (f"{RUN}/fold.js", "state.steps += 1", "state.steps += 2"),
        (f"{RUN}/record.js", 'line.state !== "end"', 'line.state === "end"'),
        (f"{RUN}/record.js", "lines.at(-1).t_ns <= line.t_ns", "lines.at(-1).t_ns < line.t_ns"),
        (f"{RUN}/player.js", "Math.min(...faults)", "Math.max(...faults)"),
        (f"{RUN}/look.js", "rank.indexOf(line.new) > rank", "rank.indexOf(line.new) < rank"),
        (f"{RUN}/scene.js", "words.length < 8", "words.length <= 8"),
    ],
}


def mutants_by_hand(name: str, root: Path) -> list[Mutant]:
    """The mutants of one of the two. ValueError for one whose place is not there, or not once."""
    found = []
    for path, before, after in BY_HAND[name]:
        source = (root / path).read_bytes()
        if source.count(before.encode()) != 1:
            raise ValueError(f"{path} must have {before!r} once (it is there {source.count(before.encode())} times)")
        begin = source.index(before.encode())
        line = source[:begin].count(b"\n") + 1
        found.append(Mutant(path, line, begin, begin + len(before.encode()), before, after))
    return found
