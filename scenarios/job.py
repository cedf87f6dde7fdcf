"""A real training job, in ordinary processes, under flapping links, crashing spines and a lost NIC port."""

from collections.abc import Sequence

from judging import PaperRow, checks, jobs
from judging.checks import Check
from scenarios import link_flap, switch_reboot
from scenarios.scenario import Program, Scenario, Setting, TimedFault, Workload, carried_out, phases

HIDDEN = 512
WEIGHTS_BYTES = 4 * (64 * HIDDEN + HIDDEN + 10 * HIDDEN + 10)  # mrclab/training/model.py
START_S = 8.0  # for as many Pythons to start as there are hosts, on two cores
STEP_MARGIN_S = 0.1  # of computing, and of turns on a shared processor
SLOWER = 1.3  # than the fabric alone would be
FLAPS_PER_MINUTE = 8  # among other faults
PORT_AT_S, PORT_FOR_S = 12.0, 14.0
PORT_SHORT_AT_S, PORT_SHORT_FOR_S = 2.0, 12.0  # where the phase is too short for the other


def step_seconds(setting: Setting) -> float:
    """How long a step should take, in lab time: every write of the ring in turn, and the vector at line rate."""
    ranks = setting.plan.host_count
    turns = (ranks - 1) * setting.plan.base_rtt_ns / 1e9  # 2 (n - 1) writes, half a round trip each
    sent = 2 * (ranks - 1) / ranks * WEIGHTS_BYTES * 8 / setting.host_rate_bps
    return SLOWER * ((turns + sent) / setting.pace + STEP_MARGIN_S)


def steps(setting: Setting, start_s: float = START_S, share: float = 1.0) -> int:
    """As many as fit into the shorter of the two phases, of which each takes this share of `step_seconds`."""
    shortest = min(setting.phases["reference"], setting.phases["faults"])
    return max(5, int((shortest - start_s) / (share * step_seconds(setting))))


def programs(setting: Setting) -> Sequence[Program]:
    """The same job twice: without faults and with them."""
    words = ["python", "-m", "mrclab.training", "--rank", "{rank}", "--ranks", "{ranks}"]
    words += ["--meet", "{folder}", "--journal", "{journal}"]
    words += ["--steps", str(steps(setting)), "--seed", str(setting.seed), "--hidden", str(HIDDEN)]
    like = Workload("all_reduce", {"size": WEIGHTS_BYTES, "rounds": 0})
    return [
        Program(name, (*words, "--name", name), phase=phase, like=like)
        for name, phase in (("clean", "reference"), ("faulty", "faults"))
    ]


def timeline(setting: Setting) -> list[TimedFault]:
    """The faults of link-flap and switch-reboot together, and one port of one NIC for a while."""
    crashes = [fault for fault in switch_reboot.timeline(setting) if fault.phase == "faults"]
    faults = [*link_flap.flaps(setting, FLAPS_PER_MINUTE), *crashes, port_lost(setting)]
    return sorted(faults, key=lambda fault: fault.at_s)


def port_lost(setting: Setting) -> TimedFault:
    """One port of the first host, for longer than all retries of a RoCE queue pair."""
    fits = setting.phases["faults"] > PORT_AT_S + PORT_FOR_S
    at_s, for_s = (PORT_AT_S, PORT_FOR_S) if fits else (PORT_SHORT_AT_S, PORT_SHORT_FOR_S)
    return TimedFault(at_s, "port-down", f"h0.p{setting.new_rng().randrange(setting.plan.planes)}", for_s)


def judge(setting: Setting) -> Sequence[Check]:
    return checks_of(setting, timeline(setting))


def checks_of(setting: Setting, faults: Sequence[TimedFault], count: int | None = None) -> Sequence[Check]:
    """The checks of the two jobs of `count` steps (None: `steps`), under these faults of the second one."""
    return [
        jobs.finished("clean"),
        jobs.over_before("clean", "faults"),
        jobs.finished("faulty"),
        jobs.same_weights("clean", "faulty", steps(setting) if count is None else count),
        jobs.learned("faulty"),
        checks.no_qp_error(),
        checks.tables_unchanged(),
        checks.faults_happened(at_least=len(carried_out(setting, faults))),
    ]


SCENARIO = Scenario(
    name="job",
    title="A real training job is the same to the last bit, faults or no faults",
    description=(
        "Ordinary processes, one in each host, train a small numpy network together: each computes the gradient of "
        "its share of the batch, and a ring all-reduce over MRC adds them up. They run it twice from the same "
        "seeds: first on a sound fabric, then while links flap, spines crash and a host loses one port of its NIC. "
        "After every step the weights of all ranks are compared, bit for bit, with those of the sound fabric."
    ),
    plan="lab",
    workloads=lambda setting: (),
    programs=programs,
    timeline=timeline,
    checks=judge,
    phases=phases(warmup_s=1.0, reference_s=45.0, faults_s=50.0),
    paper=(
        PaperRow("8", "a T1 stopped forwarding, later rebooted (75K-GPU job)", "the job went on"),
        PaperRow(
            "6/7", "a T0's transceiver flaps a link of 4 NICs (50K-GPU job)", "25 % dip for a minute, no QP failed"
        ),
    ),
)
