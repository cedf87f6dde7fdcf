"""Ten seconds, all parts once: the end-to-end test of CI."""

from collections.abc import Sequence

from judging import checks
from judging.checks import Check
from scenarios.scenario import Prober, Scenario, Setting, TimedFault, only_training, phases


def timeline(setting: Setting) -> list[TimedFault]:
    return [
        TimedFault(0.2, "link-down", "p0l0-p0s0", 1.0),
        TimedFault(1.6, "port-down", "h0.p1", 0.8),
        TimedFault(2.8, "switch-crash", "p1s1", 0.8),
    ]


def judge(setting: Setting) -> Sequence[Check]:
    return [*checks.always(planes_limit=0.10), checks.faults_happened(at_least=3)]


SCENARIO = Scenario(
    name="smoke",
    title="Everything works once",
    description="A link flap, a NIC port flap and a switch reboot on the smallest fabric, in ten seconds.",
    plan="tiny",
    workloads=only_training,
    timeline=timeline,
    checks=judge,
    phases=phases(warmup_s=1.0, reference_s=3.0, faults_s=4.5, heal_s=2.0),
    prober=Prober(),
)
