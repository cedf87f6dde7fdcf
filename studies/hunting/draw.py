"""A case from a seed, swarm style: each try is given a random few of all verbs, sizes and settings.

Few kinds at a time find more than all of them together: what one fault would do is not hidden by the others (A. Groce
and others, Swarm Testing, ISSTA 2012).
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from common.seeds import Purpose, derive
from endpoint.mrc.presets import RULES
from scenarios import TimedFault, Workload
from studies.hunting import irregular
from studies.hunting.case import Case
from studies.hunting.survivable import paths_known, survivable
from topo import Plan
from topo.fault import VERBS, targets

__all__ = ["draw"]

HUNTED = sorted(verb.name for verb in VERBS.values() if not verb.drawn_apart)
APART = sorted(verb.name for verb in VERBS.values() if verb.drawn_apart)
APART_SHARE = 0.1  # of tries without churn: one more fault, of a verb drawn apart
FAULTS_MAX = 8
DRAWS = 40  # of an entry, before the timeline stays as long as it is
BEYOND_SHARE = 0.15  # of tries: a fabric of three tiers or on rails
IRREGULAR_SHARE = 0.1  # of tries: an uneven fabric or a list of cables
CHURN_SHARE = 0.08  # of tries: the same few faults again and again, for what grows
CHURN_REPEATS = 60
CHURN_EVERY_S = 0.4
OVERTAKING_SHARE = 0.1  # of tries: retransmissions go by a queue before data's
WORDED_SHARE = 0.1  # of tries: the rules in which the preset `ocp` differs from the default
FULL_SHARE = 0.3  # of incasts: as fast as the links go, so that switches trim
POSTED_WITHIN_S = 0.2
LAST_S = 0.25  # before the end of the faults' phase every fault is undone

SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "selection": ("oblivious", "single_path"),
    "evs_active": (2, 4, 16),
    "evs_backup": (0, 2),
    "evs_min_active_share": (0.0, 0.5, 1.0),
    "probes_to_resurrect": (1, 4, 8),
    "sack_threshold_bytes": (0, 65_536),
    "timestamps": (True,),
    "mpr": (8, 16),
    "confirm_writes": (True,),
    "max_write_imm": (2, 8),
    "oor_nack": (True,),
    "congestion": ("fixed_window",),
    "rcv_penalty": (True,),
}
WORDED: Mapping[str, Any] = {rule.setting: rule.ocp for rule in RULES if rule.ocp != rule.cx8}
PLAN_KEYS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "trimming": {"enabled": (False,), "share": (0.05,)},
    "packets": {"pmtu_bytes": (512, 1024)},
    "queues": {"trim": (0.1, 0.5), "trim_lasthop": (0.2,), "no_trim_drop": (4.0,), "control_depth": (0.2,)},
}
NUMBERS: Mapping[str, tuple[float, float]] = {"percent": (0.5, 60.0), "ms": (0.0, 120.0), "mbps": (0.3, 20.0)}

NOTHING: Mapping[str, Any] = {}


def draw(seed: int, given: Mapping[str, Any] = NOTHING) -> Case:
    """The case of this seed, always the same one; `given` are settings of the user's."""
    rng = Random(derive(seed, Purpose.HUNTED_CASE))
    while True:
        even = {
            "planes": rng.choice((1, 2, 2, 3)),
            "leaves": rng.choice((1, 2, 2, 3)),
            "spines": rng.choice((1, 2, 2, 3)),
            "hosts_per_leaf": rng.choice((1, 1, 2)),
        }
        if even["leaves"] * even["hosts_per_leaf"] > 1 and even["planes"] * even["spines"] > 1:
            break
    apart = Random(derive(seed, Purpose.HUNTED_TOPOLOGY))  # leaves the other draws alike
    fabric, parts = beyond(apart, even)
    settings = few(rng, {name: rng.choice(values) for name, values in SETTINGS.items()}, (0, 0, 1, 2))
    plan_keys: dict[str, dict[str, Any]] = {}
    for section, keys in PLAN_KEYS.items():
        if chosen := few(rng, {name: rng.choice(values) for name, values in keys.items()}, (0, 0, 0, 1)):
            plan_keys[section] = chosen
    if apart.random() < OVERTAKING_SHARE:
        plan_keys["queues"] = {**plan_keys.get("queues", {}), "retransmit_priority": apart.choice((1, 6))}
    if apart.random() < WORDED_SHARE:
        settings |= WORDED
    churn = rng.random() < CHURN_SHARE
    shape = Case(rng.getrandbits(31), fabric, (), (), plan_keys, settings, given=given, parts=parts)
    plan, known = shape.plan, paths_known(shape.plan, shape.transport_settings)
    workloads = (light(rng, plan),) if churn else tuple(loads(rng, plan))
    if churn:
        faults = churned(rng, plan, known)
        return Case(
            shape.seed, fabric, workloads, faults, plan_keys, settings,
            reference_s=1.0, faults_s=CHURN_EVERY_S, after_s=4.0, rounds=3, repeats=CHURN_REPEATS,
            given=given, parts=parts,
        )  # fmt: skip
    length_s = rng.choice((1.0, 2.0, 3.0, 5.0))
    faults = timeline(rng, plan, known, length_s)
    later = Random(derive(seed, Purpose.HUNTED_FAULT))
    if later.random() < APART_SHARE:
        faults = lengthened(later, plan, known, APART, faults, length_s)
    return Case(
        shape.seed, fabric, workloads, faults, plan_keys, settings,
        reference_s=1.5, faults_s=length_s, after_s=6.0, given=given, parts=parts,
    )  # fmt: skip


def beyond(rng: Random, fabric: dict[str, int]) -> irregular.Fabric:
    """The fabric, or one of another topology of about its size, with its parts.

    A generator for this alone leaves other draws alike.
    """
    share = rng.random()
    if share >= BEYOND_SHARE + IRREGULAR_SHARE:
        return fabric, {}
    if share >= BEYOND_SHARE:
        return irregular.draw(rng)
    if rng.random() < 0.5:
        count = rng.choice((2, 2, 3))
        return {**fabric, "leaves": 2 * rng.choice((1, 2)), "rails": 2, "planes": min(fabric["planes"], count)}, {}
    spines, leaves = rng.choice((1, 2)), rng.choice((1, 1, 2))
    return {
        "planes": min(fabric["planes"], 2) if spines > 1 else 2,
        "leaves": 2 * leaves,
        "spines": 2 * spines,
        "hosts_per_leaf": 1,
        "pods": 2,
        "cores": spines * rng.choice((1, 2)),
    }, {}


def few(rng: Random, values: Mapping[str, Any], counts: tuple[int, ...]) -> dict[str, Any]:
    """A random few of these, so many as one of `counts`."""
    names = rng.sample(sorted(values), min(rng.choice(counts), len(values)))
    return {name: values[name] for name in names}


def timeline(rng: Random, plan: Plan, known: int, length_s: float) -> tuple[TimedFault, ...]:
    """Faults of a few verbs at any times, which leave every pair a path; all are undone before the end."""
    verbs = rng.sample(HUNTED, rng.randint(1, 4))
    faults: tuple[TimedFault, ...] = ()
    for _ in range(rng.randint(1, FAULTS_MAX)):
        faults = lengthened(rng, plan, known, verbs, faults, length_s)
    return faults


def lengthened(
    rng: Random, plan: Plan, known: int, verbs: Sequence[str], faults: tuple[TimedFault, ...], length_s: float
) -> tuple[TimedFault, ...]:
    """The timeline with one more fault of these verbs; as it was where none of those drawn leaves every pair a path."""
    for _ in range(DRAWS):
        entry = drawn(rng, plan, rng.choice(verbs), length_s - LAST_S)
        if entry is not None and survivable(plan, [*faults, entry], known):
            return tuple(sorted((*faults, entry), key=lambda entry: entry.at_s))
    return faults


def churned(rng: Random, plan: Plan, known: int) -> tuple[TimedFault, ...]:
    """One or two short faults, to be repeated."""
    while True:
        entries = [drawn(rng, plan, rng.choice(HUNTED), CHURN_EVERY_S / 2) for _ in range(rng.randint(1, 2))]
        kept = tuple(entry for entry in entries if entry is not None)
        if kept and survivable(plan, kept, known):
            return kept


def drawn(rng: Random, plan: Plan, verb: str, until_s: float) -> TimedFault | None:
    """One entry that is over by `until_s`; None where the plan has no target for the verb."""
    spec, places = VERBS[verb], sorted(targets(plan, verb))
    if not places:
        return None
    at_s = round(rng.uniform(0.0, until_s * 0.9), 3)
    longest_s = until_s - at_s
    for_s = round(max(0.001, longest_s * rng.random() ** 2), 3)  # short ones more often
    value = None
    if spec.argument is not None:
        low, high = NUMBERS[spec.argument.name]
        value = round(rng.uniform(low, high), 2)
    seed = rng.getrandbits(16) if spec.argument is not None else 0
    return TimedFault(at_s, verb, rng.choice(places), for_s if spec.lasting else None, value, seed)


def loads(rng: Random, plan: Plan) -> list[Workload]:
    """One or two workloads that go on through all phases."""
    hosts = [host.name for host in plan.hosts()]
    workloads = []
    for number in range(rng.choice((1, 1, 1, 2))):
        ranks = tuple(rng.sample(hosts, rng.randint(2, min(len(hosts), 4))))
        kind = rng.choice(("write_bw", "write_bw", "permutation", "mix", "incast", "all_reduce", "all_to_all"))
        if kind == "write_bw":
            ranks = ranks[:2]
        workloads.append(Workload(kind, options(rng, kind), ranks, name=f"load{number}"))
    return workloads


def options(rng: Random, kind: str) -> dict[str, Any]:
    """Random sizes for a workload of this kind."""
    if kind in ("all_reduce", "all_to_all"):
        return {"size": rng.choice((4096, 32_768)), "rounds": 0, "qps": rng.choice((1, 1, 2))}
    picked: dict[str, Any] = {
        "depth": rng.choice((1, 2, 8)),
        "qps": rng.choice((1, 1, 2)),
        "rate_bps": rng.choice((300_000, 1_000_000, 3_000_000)),
        "messages": 0,
    }
    if kind == "mix":
        picked["sizes"] = rng.choice(([[64, 3], [4096, 2], [20_000, 1]], [[1, 1], [5000, 1]], [[40_000, 1]]))
        picked["immediate_every"] = rng.choice((1, 2, 4))
    else:
        picked["size"] = rng.choice((64, 4096, 30_000, 100_000))
        if kind == "incast" and rng.random() < FULL_SHARE:
            picked |= {"rate_bps": 0, "size": 30_000, "depth": 8}
    # A stream that posts seldom would look like one that stands still.
    largest = max(size for size, _ in picked["sizes"]) if kind == "mix" else picked["size"]
    if picked["rate_bps"]:
        picked["rate_bps"] = max(picked["rate_bps"], round(largest * 8 / POSTED_WITHIN_S))
    return picked


def light(rng: Random, plan: Plan) -> Workload:
    """A trickle between two hosts: enough to keep their queue pairs busy."""
    ranks = tuple(rng.sample([host.name for host in plan.hosts()], 2))
    return Workload("write_bw", {"size": 2048, "depth": 1, "rate_bps": 400_000, "messages": 0}, ranks, name="load0")
