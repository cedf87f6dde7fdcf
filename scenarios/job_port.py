"""The real training job again, and nothing breaks but one port of one NIC, for longer than RoCE retries."""

from collections.abc import Sequence
from dataclasses import replace

from judging import jobs
from judging.checks import Check
from scenarios import job
from scenarios.scenario import Setting, TimedFault


def timeline(setting: Setting) -> list[TimedFault]:
    """One port of the first host, drawn by the seed; on a single plane it is the only one that the host has."""
    return [job.port_lost(setting)]


def judge(setting: Setting) -> Sequence[Check]:
    return [jobs.under_way("faulty"), *job.checks_of(setting, timeline(setting))]


SCENARIO = replace(
    job.SCENARIO,
    name="job-port",
    title="A training job outlives the loss of a NIC port",
    description=(
        "The job of the scenario `job`, twice: first on a sound fabric, then while one host is without one port of its "
        "NIC for 14 s, and nothing else is wrong. MRC goes on over the other ports and the weights stay the same to "
        "the bit. RoCE has one port: its retries run out, the rank dies, and with it the job."
    ),
    timeline=timeline,
    checks=judge,
    paper=job.SCENARIO.paper[1:],
)
