"""Peers that read the specification otherwise than this NIC: each is reported with the choice that is disputed.

Two NICs state their dialects when they connect; where both do, nothing is left to guess. A foreign peer states
nothing. Then bytes that make no sense by our dialect and would by another one name the likely choice: an operation in
bits where ours has none, an EV of no path whose halves make one when swapped, and so on. Bytes cannot show every
mismatch; docs/reference/dialects.md says which they do.
"""

from __future__ import annotations

from collections.abc import Iterable

from endpoint.nic import ev as evs
from endpoint.nic.dialect import CHOICES, Dialect, others
from endpoint.nic.events import EventLog
from endpoint.nic.scheduler import Scheduler

EV_CHOICES = ("ev_halves", "ev_label")
EV_LOOKS_MAX = 64
"""Doubtful EVs of one peer that are compared with what other dialects would make of them."""


class MismatchLog:
    """Each (peer, choice) is one `dialect` event, and every packet counts as `dialect_CHOICE` among the drops."""

    def __init__(self, dialect: Dialect, log: EventLog, scheduler: Scheduler) -> None:
        self.dialect = dialect
        self._log = log
        self._scheduler = scheduler
        self._told: set[tuple[str, str]] = set()
        self._ev_others = others(dialect, *EV_CHOICES)
        self._ev_looks: dict[str, int] = {}
        self._ev_verdicts: dict[str, list[str]] = {}

    def stated(self, peer: str, choice: str, ours: str, theirs: str) -> None:
        """The peer has said so itself."""
        self._tell(peer, choice, ours, theirs, "stated")

    def seen(self, peer: str, choice: str, theirs: str | None = None) -> None:
        """A packet of the peer makes sense by another value of a choice; None: by the one that ours is not."""
        ours = str(getattr(self.dialect, choice))
        if theirs is None:
            theirs = next(value for value in CHOICES[choice] if value != ours)
        self._tell(peer, choice, ours, theirs, "packet")

    def _tell(self, peer: str, choice: str, ours: str, theirs: str, how: str) -> None:
        self._log.count(f"dialect_{choice}")
        if (peer, choice) not in self._told:
            self._told.add((peer, choice))
            now_ns = self._scheduler.now_ns
            self._log.emit(now_ns, "dialect", peer=peer, choice=choice, ours=ours, theirs=theirs, how=how)

    # --- what bytes tell ---------------------------------------------------------------------------------------

    def response_op(self, peer: str, byte: int) -> bool:
        """Whether the operation of an endpoint response stands where another dialect has it, and only there."""
        shift = self.dialect.eeth_op_shift
        elsewhere = 3 << (2 if shift == 4 else 4)
        if byte & 3 << shift or not byte & elsewhere:
            return False
        self.seen(peer, "eeth_op")
        return True

    def port_mask(self, peer: str, mask: int, ports_all: int) -> bool:
        """Whether a port status mask names ports that there are not, but fits if port 1 is the other bit.

        Every host has the same ports: port n of each is on the same plane.
        """
        ours = self.dialect.mask_from_wire(mask)
        if self.dialect.mask_shift:
            elsewhere, wrong = mask, bool(mask & 1)
        else:
            elsewhere, wrong = mask >> 1, bool(ours & ~ports_all) and not mask & 1
        if not wrong or elsewhere & ~ports_all:
            return False
        self.seen(peer, "port_mask")
        return True

    def takes_wrong_icrc(self) -> bool:
        """Count a packet whose last four bytes are not the ICRC; whether the dialect takes the packet all the same."""
        self._log.count("icrc")
        return self.dialect.takes_any_icrc

    def echoed_ev(self, peer: str, echoed: int, sent: Iterable[int]) -> None:
        """The peer answers a packet on an EV that no packet was `sent` on: the peer may have read a label otherwise."""
        if self._worth_a_look(peer):
            evs_sent = list(sent)
            for other in self._ev_others:
                if any(_read(ev, self.dialect, other) == echoed for ev in evs_sent):
                    self._convict(peer, other)
                    return

    def arrived_ev(self, peer: str, arrived: int, known: Iterable[int]) -> None:
        """A packet came on an EV that is none of the `known` of its port: the peer may have striped it otherwise."""
        if self._worth_a_look(peer):
            evs_known = list(known)
            for other in self._ev_others:
                if any(_read(ev, other, self.dialect) == arrived for ev in evs_known):
                    self._convict(peer, other)
                    return

    def _worth_a_look(self, peer: str) -> bool:
        """Count a doubtful EV. Looking takes time, so only the first ones of a peer are looked at."""
        found = self._ev_verdicts.get(peer)
        if found is not None:
            for choice in found:
                self._log.count(f"dialect_{choice}")
            return False
        looks = self._ev_looks.get(peer, 0) + 1
        self._ev_looks[peer] = looks
        return looks <= EV_LOOKS_MAX

    def _convict(self, peer: str, other: Dialect) -> None:
        choices = [choice for choice in EV_CHOICES if getattr(other, choice) != getattr(self.dialect, choice)]
        self._ev_verdicts[peer] = choices
        for choice in choices:
            self.seen(peer, choice, str(getattr(other, choice)))


def _read(ev: int, writer: Dialect, reader: Dialect) -> int:
    """The EV that `reader` finds in an encapsulated packet that `writer` has sent on `ev`."""
    source_port, label = evs.stripe(ev, writer)
    carried = writer.inner_label if reader.inner_label else writer.outer_label
    return evs.unstripe(source_port, label if carried else 0, reader)


def refusal(host: str, peer: str, found: list[tuple[str, str, str]]) -> str:
    """Why two hosts with these `endpoint.nic.dialect.differences` cannot be connected."""
    said = "; ".join(f"{choice} is {theirs!r} there and {ours!r} here" for choice, ours, theirs in found)
    return f"{peer} speaks another dialect of MRC than {host}: {said}; give both the same setting 'dialect'"
