"""Four spines reboot one after another, unannounced, and then a leaf, under a training loop.

The forms `switch-reboot@leaf`, `@spine` and `@core` reboot switches of one tier only, so that each has its own verdict.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from judging import FaultSpan, PaperRow, checks
from judging.checks import Check
from scenarios import places
from scenarios.scenario import Phase, Scenario, Setting, TimedFault, Workload, carried_out, only_training, phases
from topo import PLURALS, ROLES, Plan, SwitchRole

SPINES = 4
DOWN_S = 3.0
SPINES_SHORT, DOWN_SHORT_S = 2, 1.5
RETURN_S = 2.0  # until probes have brought the paths of a switch back, about 20 round trips of three tiers


def outages(setting: Setting) -> tuple[int, float, float]:
    """How many spines crash, how far apart, and for how long, all of which fit into the phase, in seconds."""
    if setting.phases["faults"] < SPINES * 2 * DOWN_S:
        return SPINES_SHORT, (setting.phases["faults"] - 1.0) / SPINES_SHORT, DOWN_SHORT_S
    return SPINES, 8.0, DOWN_S


def workloads(setting: Setting) -> Sequence[Workload]:
    """ValueError on a fabric on which a spine or core that is away is missed: then it costs what it carried."""
    places.spines(setting.plan, "crashes")
    return training_beside(("spine", "core"), setting)


def training_beside(roles: Sequence[SwitchRole], setting: Setting) -> Sequence[Workload]:
    """The training loop, where the fabric has room for it while a switch of these roles is away."""
    plan = setting.plan
    places.check_spare(plan, [switch.name for switch in plan.switches() if switch.role in roles], WHOLE.name)
    return only_training(setting)


def timeline(setting: Setting) -> list[TimedFault]:
    """A spine crashes every 8 s and comes back provisioned 3 s later; a leaf does the same in a phase of its own.

    On three tiers every second one is a core.
    """
    plan, rng = setting.plan, setting.new_rng()
    spines, apart_s, down_s = outages(setting)
    names, cores = places.spines(plan, "crashes"), places.switches(plan, "core")
    if cores:  # each tier gets its share
        above = rng.sample(cores, min(spines // 2, len(cores)))
        chosen = [*rng.sample(names, min(spines - len(above), len(names))), *above]
    else:
        chosen = rng.sample(names, min(spines, len(names)))
    crashes = [TimedFault(1.0 + apart_s * index, "switch-crash", name, down_s) for index, name in enumerate(chosen)]
    leaf = f"p{rng.randrange(plan.planes)}l{rng.randrange(plan.leaves)}"
    return [*crashes, TimedFault(1.0, "switch-crash", leaf, down_s, phase="leaf")]


def of_tier(role: SwitchRole, setting: Setting) -> list[TimedFault]:
    """As many switches of one tier crash one after another, or all that there are."""
    count, apart_s, down_s = outages(setting)
    there = crashable(setting.plan, role)
    chosen = setting.new_rng().sample(there, min(count, len(there)))
    return [TimedFault(1.0 + apart_s * index, "switch-crash", name, down_s) for index, name in enumerate(chosen)]


def crashable(plan: Plan, role: SwitchRole) -> list[str]:
    """The switches of a tier. ValueError names the forms for the tiers that the plan has."""
    if not (names := places.switches(plan, role)):
        valid = " or ".join(f"{WHOLE.name}@{role}" for role in places.tiers(plan))
        raise ValueError(f"{WHOLE.name}@{role} crashes {PLURALS[role]}, and plan {plan.name!r} has none: use {valid}")
    return names


def judge(setting: Setting) -> Sequence[Check]:
    return judge_crashes(setting, timeline(setting))


def judge_tier(role: SwitchRole, setting: Setting) -> Sequence[Check]:
    return judge_crashes(setting, of_tier(role, setting), leaf="faults" if role == "leaf" else "")


def plane_away(setting: Setting, fault: FaultSpan) -> float:
    """The cost of running without a plane while a leaf is away and until probes restore its paths, in ns of the run.
    All other hosts wait for those under the leaf at the end of a step."""
    away_ns = (fault.stop_ns or fault.start_ns) - fault.start_ns + RETURN_S * setting.pace * 1e9
    return away_ns / setting.plan.planes


def judge_crashes(setting: Setting, faults: Sequence[TimedFault], leaf: str = "leaf") -> list[Check]:
    """In the phase `leaf`, leaves crash: hosts lose a plane while a switch is away, and planes are not even."""
    own = [
        *checks.always(),
        checks.reference_load(),
        checks.faults_happened(at_least=len(carried_out(setting, faults))),
        checks.faults_felt(),
    ]
    for phase in dict.fromkeys(fault.phase for fault in faults):
        away_ns = partial(plane_away, setting) if phase == leaf else None
        own += [checks.fault_cost(phase, away_ns=away_ns), checks.drift(phase)]
        own += [] if phase == leaf else [checks.planes_even(0.05, phase=phase)]
    return own


WHOLE = Scenario(
    name="switch-reboot",
    title="Training does not notice rebooting switches",
    description=(
        "Four spines crash one after another while eight hosts train. Nobody is told: links stay up, the switch "
        "only stops forwarding, and comes back with the same static tables. Then a leaf does the same, which "
        "takes one plane from the two hosts under it for as long as it is away."
    ),
    plan="lab",
    workloads=workloads,
    timeline=timeline,
    checks=judge,
    phases=phases(Phase("leaf", 14.0), reference_s=16.0, faults_s=34.0),
    short=phases(Phase("leaf", 5.0), warmup_s=1.5, reference_s=7.0, faults_s=10.0, heal_s=1.5),
    settings={"retransmit_plane": "other"},  # without it 1 of 6 short runs on real links kept too little (mrc-cx8)
    paper=(
        PaperRow("8", "a T1 stopped forwarding, later rebooted (75K-GPU job)", "12.4 → 10.1 Pb/s for one 1-min sample"),
        PaperRow("11", "T1 down and up, 4 QPs across T1s", "mean 1533 Gb/s, lowest sample 1508"),
        PaperRow("10", "T0 down (T0-local, 1 of 8 ports)", "1533 → 1338 Gb/s, one 0.22-s sample near 0"),
    ),
)
SCENARIO = replace(
    WHOLE,
    forms={
        role: replace(
            WHOLE,
            title=f"Training does not notice rebooting {PLURALS[role]}",
            description=(
                f"{PLURALS[role].capitalize()} crash one after another while all hosts train, and no switch of "
                "another tier does. Links stay up, the switches only stop forwarding, and come back with the same "
                "static tables."
            ),
            workloads=partial(training_beside, [] if role == "leaf" else [role]),
            timeline=partial(of_tier, role),
            checks=partial(judge_tier, role),
            phases=phases(reference_s=16.0, faults_s=34.0),
            short=phases(warmup_s=1.5, reference_s=7.0, faults_s=10.0, heal_s=1.5),
        )
        for role in ROLES
    },
)
