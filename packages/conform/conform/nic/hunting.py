"""A hunt: random schedules of loss, reordering, trims, marks, copies and dead paths, and what must hold of each.

A schedule that breaks a rule is made as short as it gets. The rules' tests judge a trial: one schedule that was played.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

from conform.nic.bench import Bench, Message
from conform.nic.frames import AGAIN, PSN, TRIMMED, WRITES, Packet
from conform.result import Verdict, must, none

FATES_IN = ("whole",) * 60 + ("trim",) * 12 + ("trim_lasthop",) * 5 + ("mark",) * 8 + ("lose",) * 10 + ("copy",) * 5
FATES_OUT = ("whole",) * 75 + ("trim",) * 7 + ("mark",) * 6 + ("lose",) * 8 + ("dead",) * 2 + ("twice",) * 2
HALF = 1 << 23
TRIES_MAX = 80
"""Smaller schedules that are tried."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The tester's packets in order with their fates, and the fates of the device's packets."""

    messages: tuple[tuple[int, bool], ...]
    """Packets of each write of the tester, and whether it has an immediate."""
    inward: tuple[tuple[int, int, str], ...]
    """(message, packet, fate) in the order of sending."""
    outward: tuple[str, ...]
    """The fates of the device's packets, by PSN."""

    def text(self) -> str:
        return json.dumps(asdict(self))

    def __len__(self) -> int:
        return len(self.inward) + len(self.outward) + sum(fate != "whole" for fate in self.outward)


def read(text: str) -> Schedule:
    """A schedule from its text."""
    told: dict[str, Any] = json.loads(text)
    return Schedule(
        tuple((count, imm) for count, imm in told["messages"]),
        tuple((message, n, fate) for message, n, fate in told["inward"]),
        tuple(told["outward"]),
    )


def drawn(rng: Random) -> Schedule:
    """A random schedule."""
    messages = tuple((rng.randint(1, 12), rng.random() < 0.4) for _ in range(rng.randint(1, 4)))
    order = [(number, n) for number, (count, _) in enumerate(messages) for n in range(count)]
    spread = rng.choice((0, 2, 6, 40))
    order.sort(key=lambda one: sum(count for count, _ in messages[: one[0]]) + one[1] + rng.uniform(0, spread))
    inward = tuple((number, n, rng.choice(FATES_IN)) for number, n in order)
    return Schedule(messages, inward, tuple(rng.choice(FATES_OUT) for _ in range(rng.randint(1, 40))))


@dataclass(slots=True)
class Trial:
    """A schedule that was played to a device, and the frames that came back."""

    bench: Bench
    messages: list[Message] = field(default_factory=list)
    sent: list[tuple[int, int, str]] = field(default_factory=list)
    """(frames seen until then, PSN, fate) of the tester's packets."""
    data: dict[int, list[Packet]] = field(default_factory=dict)
    """The device's packets by PSN."""
    wanted: bytes = b""
    """The bytes that the device was to write."""
    completions: list[str] = field(default_factory=list)
    last: str = ""
    """How the device's write completed."""
    asked: Packet | None = None
    """The answer to the last probe."""

    def there(self, seen: int) -> set[int]:
        """PSNs that may have arrived at the device before frame `seen` of it."""
        return {psn for at, psn, fate in self.sent if at <= seen and not fate.startswith("trim")}

    @property
    def end(self) -> int:
        """The PSN behind the tester's writes."""
        return self.messages[-1].first + self.messages[-1].count & PSN


def play(bench: Bench, schedule: Schedule) -> Trial:
    """Play a schedule, which is judged afterwards."""
    trial = Trial(bench.begin(receives=len(schedule.messages)))
    trial.messages = [
        bench.message(count, imm=number if imm else None) for number, (count, imm) in enumerate(schedule.messages)
    ]
    play_inward(trial, schedule)
    trial.completions = bench.completions()
    if schedule.outward:
        play_outward(trial, schedule.outward)
    return trial


def put(trial: Trial, message: Message, n: int, fate: str, flags: int | None = None) -> None:
    bench = trial.bench
    ev = bench.rng.choice(bench.evs)
    if fate == "lose":
        return
    trial.sent.append((len(bench.seen), message.first + n & PSN, fate))
    if fate.startswith("trim"):
        bench.put_trimmed(message, n, ev=ev, lasthop=fate == "trim_lasthop")
        return
    for _ in range(2 if fate == "copy" else 1):
        bench.put(message, n, ev=ev, marked=fate == "mark", flags=flags)


def play_inward(trial: Trial, schedule: Schedule) -> None:
    """The tester writes; lost and trimmed packets are sent again at the end, and a probe asks what has arrived."""
    bench = trial.bench
    for number, n, fate in schedule.inward:
        put(trial, trial.messages[number], n, fate)
    there = trial.there(len(bench.seen))
    for message in trial.messages:
        for n in range(message.count):
            if message.first + n & PSN not in there:
                put(trial, message, n, "whole", flags=AGAIN)
    bench.settle()
    bench.put_probe(trial.end, 0x77)
    bench.settle()
    answers = [packet for packet in bench.seen if packet.kind == "SACK" and packet.probe and bench.ours(packet)]
    trial.asked = answers[-1] if answers else None


def play_outward(trial: Trial, fates: Sequence[str]) -> None:
    """The device writes through a fabric with these fates; copies arrive."""
    bench = trial.bench
    trial.wanted = bench.post(len(fates))
    got: set[int] = set()
    timers = bench.about.timers
    until = bench.session.clock_ns() + 6 * (timers.unit_ns << timers.timeout)
    bench.arrived = (bench.psn - 1 & PSN, ())
    while len(got) < len(fates):
        packet = next(iter(bench.of(*WRITES)), None)
        if packet is None:
            if bench.take(until) is None:
                break
            continue
        bench.unread.remove(packet)
        index = packet.psn - bench.psn & PSN
        if index >= len(fates):
            trial.data.setdefault(packet.psn, []).append(packet)
            break
        first = packet.psn not in trial.data
        trial.data.setdefault(packet.psn, []).append(packet)
        answer(trial, packet, index, fates[index] if first else "whole", got)
    bench.acknowledge(bench.psn + len(fates) - 1 & PSN, 1) if len(got) == len(fates) else None
    trial.last = bench.completion() if len(got) == len(fates) else ""


def answer(trial: Trial, packet: Packet, index: int, fate: str, got: set[int]) -> None:
    """What the fabric and the tester do with a packet of the device."""
    bench = trial.bench
    if fate == "dead" and len(bench.dead_evs) < len(bench.evs) // 4:
        bench.dead_evs.add(packet.ev)
    if fate in ("lose", "dead") or packet.ev in bench.dead_evs:
        return
    if fate == "trim":
        bench.control(bench.to.nack(packet.psn, TRIMMED, packet.ev), "NACK", packet.ev)
        return
    got.add(index)
    cack = next(n for n in range(len(got) + 1) if n not in got) - 1
    others = tuple(bench.psn + n & PSN for n in sorted(got) if cack < n <= cack + 64)
    bench.arrived = (bench.psn + cack & PSN, others)
    for _ in range(2 if fate == "twice" else 1):
        told = bench.to.sack(*bench.arrived, ev=packet.ev, mark=int(fate == "mark"), answer=index - cack)
        bench.control(told, "SACK", packet.ev)


# --- what must hold of every trial ----------------------------------------------------------------------------------


def true_sacks(trial: Trial) -> None:
    """SACKs report nothing that has not arrived."""
    first = trial.messages[0].first
    for at, packet in enumerate(trial.bench.seen):
        if packet.kind != "SACK" or not trial.bench.ours(packet):
            continue
        there = trial.there(at)
        told = {psn for psn in packet.received if (psn - packet.cack & PSN) < HALF}
        told |= {first + n & PSN for n in range((packet.cack + 1 - first & PSN) % HALF)}
        must(told <= there, f"{packet} reports {sorted(told - there)[:4]}, which has not arrived")


def true_nacks(trial: Trial) -> None:
    """NACKs are about packets that arrived trimmed."""
    cut = {psn for _, psn, fate in trial.sent if fate.startswith("trim")}
    nacks = [packet for packet in trial.bench.seen if packet.kind == "NACK" and trial.bench.ours(packet)]
    none([packet for packet in nacks if packet.nack_psn not in cut], "refuses a packet that did not arrive trimmed")


def memory(trial: Trial) -> None:
    """The memory holds what was written."""
    for message in trial.messages:
        trial.bench.holds(message)


def cumulative(trial: Trial) -> None:
    """In the end everything is acknowledged."""
    wanted, asked = trial.end - 1 & PSN, trial.asked
    must(
        asked and asked.cack == wanted, f"everything through {wanted} has arrived; the device says {asked or 'nothing'}"
    )


def counted(trial: Trial) -> None:
    """In the end every message is acknowledged, and none before."""
    counts = [packet.msn for packet in trial.bench.seen if packet.kind == "ACKNOWLEDGE" and trial.bench.ours(packet)]
    found, wanted = max(counts, default=0), len(trial.messages)
    must(found == wanted, f"{wanted} messages are complete, and the device says {found}")


def immediates(trial: Trial) -> None:
    """Immediates come once, and in order."""
    wanted = [f"imm:{one.imm}:{len(one.data)}" for one in trial.messages if one.imm is not None]
    found = [one for one in trial.completions if one.startswith("imm:")]
    must(found == wanted, f"the immediates are {found}, not {wanted}")


def written(trial: Trial) -> None:
    """The device's write arrives, packet by packet."""
    bench = trial.bench
    for n in range(-(-len(trial.wanted) // bench.about.pmtu)):
        part = trial.wanted[n * bench.about.pmtu : (n + 1) * bench.about.pmtu]
        copies = trial.data.get(bench.psn + n & PSN, [])
        none([packet for packet in copies if packet.payload != part], "has other bytes than the program's")
        must(copies, f"packet {n} of the device's write never came")


def repaired(trial: Trial) -> None:
    """The device's write completes with success."""
    must(not trial.wanted or trial.last == "1:success", f"the device's write ended as {trial.last or 'nothing'}")


def copies(trial: Trial) -> None:
    """Packets come first without RTX, and again with it."""
    for packets in trial.data.values():
        for number, packet in enumerate(packets):
            again = int(packet.again)
            must(again == bool(number), f"{packet} came for the {number + 1}. time, and RTX is {again}")


def inside(trial: Trial) -> None:
    """The device sends nothing but its write."""
    known = {trial.bench.psn + n & PSN for n in range(-(-len(trial.wanted) // trial.bench.about.pmtu))}
    for packet in trial.bench.seen:
        other = packet.kind in WRITES and trial.bench.ours(packet) and packet.psn not in known
        must(not packet.fault and not other, f"{packet} is no part of the device's write")


# --- the hunt -------------------------------------------------------------------------------------------------------

Check = Callable[[Trial], str | None]


def broken(check: Check, trial: Trial) -> str:
    """Why a trial breaks a rule; "" if it does not."""
    try:
        check(trial)
    except Verdict as said:
        return str(said)
    return ""


def smaller(schedule: Schedule) -> list[Schedule]:
    """Schedules with less in them, the much smaller ones first."""
    found = [replace(schedule, outward=()), replace(schedule, inward=())]
    for size in (len(schedule.inward) // 2, len(schedule.inward) // 4, 1):
        for at in range(0, len(schedule.inward), size) if size else ():
            found.append(replace(schedule, inward=schedule.inward[:at] + schedule.inward[at + size :]))
    if len(schedule.messages) > 1:
        kept = len(schedule.messages) - 1
        inward = tuple(one for one in schedule.inward if one[0] < kept)
        found.append(replace(schedule, messages=schedule.messages[:kept], inward=inward))
    for cut in (len(schedule.outward) // 2, len(schedule.outward) - 1):
        found.append(replace(schedule, outward=schedule.outward[:cut]))
    for n, fate in enumerate(schedule.outward):
        if fate != "whole":
            found.append(replace(schedule, outward=(*schedule.outward[:n], "whole", *schedule.outward[n + 1 :])))
    for number, (count, imm) in enumerate(schedule.messages):
        used = max([n for message, n, _ in schedule.inward if message == number], default=0) + 1
        if used < count:
            messages = (*schedule.messages[:number], (used, imm), *schedule.messages[number + 1 :])
            found.append(replace(schedule, messages=messages))
    return [one for one in found if one != schedule]


def shrunk(schedule: Schedule, breaks: Callable[[Schedule], bool]) -> Schedule:
    """The shortest schedule that still breaks the rule, as far as `TRIES_MAX` tries get."""
    tries = 0
    again = True
    while again:
        again = False
        for one in smaller(schedule):
            tries += 1
            if tries > TRIES_MAX:
                return schedule
            if breaks(one):
                schedule, again = one, True
                break
    return schedule
