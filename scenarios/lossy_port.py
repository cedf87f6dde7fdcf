"""A NIC's link loses packets and stays up: MRC stays on its plane, and a policy of the operator takes the plane out."""

from collections.abc import Sequence

from judging import Finding, PaperRow, Run, Span, checks, sample_size
from judging.checks import Check, check
from judging.measures import counters, goodput, planes
from scenarios.scenario import Phase, Prober, Scenario, Setting, TimedFault, only_training, phases

HOST, PLANE = "h0", 1
LOSS = 0.10
AT_S = 1.0
SETTLE_ROUND_TRIPS = 20


def timeline(setting: Setting) -> list[TimedFault]:
    """The link loses packets in both phases; in the second one, denylists keep all hosts off it."""
    seed = setting.new_rng().randrange(1 << 32)
    lossy_s = setting.phases["faults"] + setting.phases["policy"] - AT_S
    link, port = f"{HOST}-p{PLANE}l{setting.plan.leaf_of(setting.plan.host(HOST))}", f"{HOST}.p{PLANE}"
    return [
        TimedFault(AT_S, "loss", link, lossy_s, value=100 * LOSS, seed=seed),
        TimedFault(0.0, "drain-port", port, setting.phases["policy"], phase="policy"),
    ]


def sent_by_plane(run: Run, span: Span, host: str) -> dict[int, float]:
    """Bytes by plane that one host sent in a span."""
    return planes.bytes_sent(Run([line for line in run.lines if line["node"] == host]), span)


@check
def mrc_stays(run: Run, limit: float = 0.10) -> Finding:
    """Without the policy, the host sends as much on the lossy plane as on the others."""
    span = run.phases.get("faults")
    if span is None or not run.faults:
        return Finding("stays", None, "there was no lossy phase")
    sent = sent_by_plane(run, Span("lossy", run.faults[0].start_ns, span.stop_ns), HOST)
    if len(sent) < 2:
        return Finding("stays", None, "a host with one plane has no choice")
    mean = sum(sent.values()) / len(sent)
    share = sent[PLANE] / mean if mean else 0.0
    reason = f"{HOST} sent {share:.0%} of a plane's mean on the lossy one (at least {1 - limit:.0%})"
    return Finding("stays", share >= 1 - limit, reason, {"share": round(share, 4)})


@check
def policy_leaves(run: Run, setting: Setting) -> Finding:
    """With the denylist entry no data is on the plane, from the host or to it."""
    span = run.phases.get("policy")
    if span is None:
        return Finding("policy leaves", None, "there was no phase 'policy'")
    if setting.single_plane:
        return Finding("policy leaves", None, "the baseline cannot be told to leave a plane")
    settled = Span("policy", span.start_ns + SETTLE_ROUND_TRIPS * setting.plan.base_rtt_ns, span.stop_ns)
    sent = sent_by_plane(run, settled, HOST)
    share = sent.get(PLANE, 0.0) / max(1.0, sum(sent.values()))
    reason = f"{share:.2%} of what {HOST} sent was on the lossy plane (at most 1%)"
    return Finding("policy leaves", share <= 0.01, reason, {"share": round(share, 5)})


@check
def host_names_it(run: Run, setting: Setting) -> Finding:
    """The prober of the host names its own link, and no prober blames anything that the link's losses do not explain.

    Probes to spines also cross the lossy link, so that a few may blame a link behind it for a while.
    """
    leaf = f"p{PLANE}l{setting.plan.leaf_of(setting.plan.host(HOST))}"
    blamed = [line for line in run.kind("link") if line.get("blame")]
    right = [line for line in blamed if {str(line.get("a")), str(line.get("b"))} == {HOST, leaf}]
    behind = [line for line in blamed if line["node"] == HOST and leaf in (line.get("a"), line.get("b"))]
    elsewhere = len(blamed) - len(behind)
    figures = {"right": len(right), "behind": len(behind) - len(right), "elsewhere": elsewhere}
    if not right:
        return Finding("blame", False, f"{HOST} did not name its own link; {len(blamed)} other names", figures)
    after_s = run.seconds(int(right[0]["t_ns"])) - run.seconds(run.faults[0].start_ns)
    reason = f"{HOST} named its link after {after_s:.1f} s; {elsewhere} names elsewhere (at most 0)"
    return Finding("blame", elsewhere == 0, reason, figures)


@check
def losses_end(run: Run, setting: Setting, limit: float = 0.05) -> Finding:
    """With the policy next to nothing is sent again, and goodput is no less than the planes that are left can carry."""
    reference, lossy, policy = (run.phases.get(name) for name in ("reference", "faults", "policy"))
    if reference is None or lossy is None or policy is None:
        return Finding("losses end", None, "phases 'reference', 'faults' and 'policy' are needed")
    if setting.single_plane:
        return Finding("losses end", None, "the baseline cannot be told to leave a plane")
    settled = Span("policy", policy.start_ns + SETTLE_ROUND_TRIPS * setting.plan.base_rtt_ns, policy.stop_ns)
    again = [counters.qp_totals(run, span).get("retransmits", 0) / span.length_ns for span in (lossy, settled)]
    before, without, with_it = (goodput.of_phase(run, span) or 0.0 for span in (reference, lossy, policy))
    if before <= 0 or again[0] <= 0:
        return Finding("losses end", None, "nothing was carried, or nothing was lost")
    least = (setting.plan.planes - 1) / setting.plan.planes
    share, kept = again[1] / again[0], with_it / before
    figures = {"again": round(share, 4), "without": round(without / before, 4), "with": round(kept, 4)}
    reason = (
        f"with the policy {share:.1%} as many packets are sent again (at most {limit:.0%}); goodput is"
        f" {without / before:.1%} of the reference's without it and {kept:.1%} with it (at least {least - limit:.0%})"
    )
    error = sample_size.rate_error(run, policy.length_ns)
    enough = sample_size.holds(least - kept, limit, error)
    return Finding("losses end", enough if share <= limit else False, reason, figures)


def judge(setting: Setting) -> Sequence[Check]:
    own = [checks.faults_happened(at_least=2), checks.faults_felt(), mrc_stays()]
    if not setting.single_plane:
        own.append(host_names_it(setting))
    return [*checks.always(), *own, policy_leaves(setting), losses_end(setting)]


SCENARIO = Scenario(
    name="lossy-port",
    title="A lossy NIC link is abandoned by policy, not by MRC",
    description=(
        "The link between one NIC and its leaf loses a tenth of its packets and stays up. MRC keeps all planes evenly "
        "loaded and cannot tell which end is at fault, so it stays on the plane and sends again what is lost. The "
        "prober of that host can tell: its probes go to the leaf and back. A policy then denies every path by that "
        "port, on all hosts: the losses end, and the job runs on the planes that are left. Whether that is better is "
        "the operator's decision, because a plane that loses a tenth still carries more than none."
    ),
    plan="lab",
    workloads=only_training,
    timeline=timeline,
    checks=judge,
    phases=phases(Phase("policy", 16.0), reference_s=12.0, faults_s=30.0),
    prober=Prober(),
    paper=(
        PaperRow(
            "§4",
            "a NIC–T0 link does not fail but loses many packets",
            "MRC cannot avoid the plane; Clustermapper decides by policy, and a denylist entry takes the plane out",
        ),
    ),
)
