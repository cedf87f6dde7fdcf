"""Bugs to be planted into the transport, in this process only, and a hunt for one of them.

    MRCLAB_COMPILED=off python -m tests.helpers.planted_bugs NAME [SEED]

writes one line of JSON: tries and seconds until the hunt saw the bug, and how small the case became.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from copy import copy
from pathlib import Path
from typing import Any

from cli.main import main
from endpoint.mrc.operations import EndpointOperations
from endpoint.mrc.paths.ev_set import EvPath, EvSet
from endpoint.mrc.paths.ev_state import EvState
from endpoint.mrc.requester import Requester
from endpoint.mrc.responder import Answers
from endpoint.nic.config import NEVER
from endpoint.nic.packet import INNER_OFFSET
from endpoint.nic.wire import EndpointOp
from endpoint.nic.work import WorkQueue
from studies.hunting.hunt import Hunt

TRIES_MAX = 600
WORD = (1 << 64) - 1
ADDRESSES = INNER_OFFSET - 32
"""Those of the outer IPv6 header, which end it."""


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put a method in place of another; `make` is given the original."""
    setattr(owner, name, make(getattr(owner, name)))


def ev_never_comes_back() -> None:
    replace(EvSet, "probe_answered", lambda original: lambda self, path, sent_ns, marked, now_ns: None)


def retransmission_on_the_same_dead_path() -> None:
    class Stubborn:
        def __init__(self, requester: Any) -> None:
            self._flight = requester.flight
            self.heeds = True

        def next(self, usable: int) -> Any:
            flight = self._flight
            return flight.paths[flight.una + (flight.lost & -flight.lost).bit_length() - 1 & flight.mask]

    def make(original: Any) -> Any:
        def send_lost(self: Any, now_ns: int, out: Any, end: int) -> Any:
            chosen, self._selection = self._selection, Stubborn(self)
            try:
                return original(self, now_ns, out, end)
            finally:
                self._selection = chosen

        return send_lost

    replace(Requester, "_send_lost", make)


def nack_ignored() -> None:
    replace(Requester, "receive_nack", lambda original: lambda self, now_ns, reason, psn24, entropy: None)


def sack_bitmap_off_by_one() -> None:
    def make(original: Any) -> Any:
        def sack(self: Any, route: Any, cack: int, start: int, bitmap: int, *rest: Any) -> None:
            original(self, route, cack, start, bitmap << 1 & WORD, *rest)

        return sack

    replace(Answers, "sack", make)


def port_status_update_lost_once() -> None:
    def make(original: Any) -> Any:
        def heeded(self: Any, peer: Any, request_id: int, request: Any, now_ns: int) -> bool:
            ports = request.port_status_mask
            news = request.op == EndpointOp.PORT_STATUS_UPDATE and peer.ports & ports != ports
            if news and not getattr(self, "lost_one", False):
                self.lost_one = True
                return True  # answered, and nothing done
            return bool(original(self, peer, request_id, request, now_ns))

        return heeded

    replace(EndpointOperations, "_heeded", make)


def window_that_never_reopens() -> None:
    def make(original: Any) -> Any:
        def lose(self: Any, index: int, now_ns: int, *, proved: bool) -> None:
            before = self.flight.inflight_bytes
            original(self, index, now_ns, proved=proved)
            self.flight.inflight_bytes = before  # what is lost is never given back

        return lose

    replace(Requester, "_lose", make)


def duplicate_immediate() -> None:
    def make(original: Any) -> Any:
        def deliver(self: Any, immediate: int, length: int, *rest: Any) -> Any:
            found = original(self, immediate, length, *rest)
            COUNTS["deliver"] += 1
            if COUNTS["deliver"] % 50 == 0 and self.receives:
                original(self, immediate, length, *rest)
            return found

        return deliver

    replace(WorkQueue, "deliver", make)


COUNTS = {"deliver": 0}


def probe_counted_twice() -> None:
    def make(original: Any) -> Any:
        def answered(self: EvSet, path: EvPath, sent_ns: int, marked: bool, now_ns: int) -> None:
            path.streak += path.state is EvState.ASSUMED_BAD
            original(self, path, sent_ns, marked, now_ns)

        return answered

    replace(EvSet, "probe_answered", make)


def leak_per_fault() -> None:
    def make(original: Any) -> Any:
        def refresh(self: Any) -> None:
            before = self.version
            original(self)
            if self.version != before:
                self.__dict__.setdefault("history", []).append([before])

        return refresh

    replace(EvSet, "refresh", make)


def timer_not_rearmed() -> None:
    def make(original: Any) -> Any:
        def handle_timer(self: Any, now_ns: int) -> int:
            asked = now_ns >= self.retry.ask_due_ns
            due_ns = original(self, now_ns)
            return NEVER if asked else int(due_ns)

        return handle_timer

    replace(Requester, "handle_timer", make)


def planes_taken_for_even() -> None:
    """The k-th EV of a plane takes the path that it would have if every plane had as many as the one with most.

    Only a fabric shows this in which a plane has fewer paths than a later one.
    """

    def make(original: Any) -> Any:
        def init(self: EvSet, routes: Any, *rest: Any, **named: Any) -> None:
            routes = list(routes)
            by_port: dict[int, list[Any]] = {}
            for route in routes:
                by_port.setdefault(route.port.number, []).append(route)
            most = max(map(len, by_port.values()))
            mixed = []
            for number, own in enumerate(by_port.values()):
                for place, route in enumerate(own):
                    other = copy(route)
                    theirs = routes[(number * most + place) % len(routes)]
                    other.headers = b"".join(
                        (
                            route.headers[:ADDRESSES],
                            theirs.headers[ADDRESSES:INNER_OFFSET],
                            route.headers[INNER_OFFSET:],
                        )
                    )
                    mixed.append(other)
            original(self, mixed, *rest, **named)

        return init

    replace(EvSet, "__init__", make)


BUGS: dict[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        ev_never_comes_back, retransmission_on_the_same_dead_path, nack_ignored, sack_bitmap_off_by_one,
        port_status_update_lost_once, window_that_never_reopens, duplicate_immediate, probe_counted_twice,
        leak_per_fault, timer_not_rearmed, planes_taken_for_even,
    )
}  # fmt: skip


def hunted(name: str, seed: int) -> dict[str, Any]:
    """Plant the bug and hunt until it is seen."""
    BUGS[name]()
    hunt = Hunt(seed)
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.monotonic()
        hunt.run(tries=TRIES_MAX, output=Path(folder))
        found: dict[str, Any] = {"bug": name, "seed": seed, "tries": hunt.tries, "found": bool(hunt.catches)}
        for catch in hunt.catches:
            found |= {
                "seconds": round(catch.seconds, 1),
                "sentence": catch.sentence,
                "before": len(catch.drawn.faults),
                "after": len(catch.shrunk.case.faults),
                "shrinking_runs": catch.shrunk.runs,
                "shrinking_seconds": round(time.monotonic() - began_s - catch.seconds, 1),
                "finished": catch.shrunk.finished,
                "case": catch.shrunk.case.describe(),
                "run_again": run_again(catch.path, catch.shrunk.case.seed, Path(folder)),
            }
    return found


def run_again(path: Path | None, seed: int, folder: Path) -> int:
    """The exit status of `./lab run` for what was found; what it says goes nowhere."""
    words = ["run", str(path), "--world", "simulated", "--seed", str(seed), "--runs", str(folder), "--plain"]
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        return main(words)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(hunted(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)) + "\n")
