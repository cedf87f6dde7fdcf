"""The prober: which link it blames, what it denies, and who else may deny."""

import math
import random
from collections.abc import Set
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.rig.profiles import profile as example
from endpoint import blame, profile
from endpoint.blame import DOWN, LOSSY, OK, UNKNOWN, LinkState, Probed, infer, merge
from endpoint.denylist import BY_REQUEST, CONTROL, FAULTS, OWNERS, PROBER, Denylist
from endpoint.prober import PathProber, ProberError

UP = {1: True, 2: True}


def leaf(lost: int, sent: int = 50, run: int = 0, port: int = 1) -> Probed:
    return Probed(f"p{port - 1}l2", port, True, sent, lost, run)


def spine(index: int, lost: int, sent: int = 50, run: int = 0, port: int = 1) -> Probed:
    return Probed(f"p{port - 1}s{index}", port, False, sent, lost, run)


def core(index: int, behind: int, lost: int, sent: int = 50, run: int = 0, port: int = 1) -> Probed:
    return Probed(f"p{port - 1}c{index}", port, False, sent, lost, run, behind=f"p{port - 1}s{behind}")


def states(*probed: Probed, up: dict[int, bool] = UP) -> dict[str, LinkState]:
    return {f"{link.a}–{link.b}": link for link in infer("h3", up, probed)}


def test_a_spine_link_that_loses_a_fifth_is_blamed_and_no_other():
    found = states(leaf(0), spine(0, 0), spine(3, 10))
    assert found["p0l2–p0s3"].state == LOSSY
    assert found["p0l2–p0s3"].blame == "p0l2–p0s3 is losing 20%"
    assert found["h3–p0l2"].state == found["p0l2–p0s0"].state == OK


def test_a_lossy_host_link_is_not_blamed_on_the_spines_behind_it():
    found = states(leaf(10), spine(0, 11), spine(1, 9), spine(2, 30))
    assert found["h3–p0l2"].blame == "h3–p0l2 is losing 20%"
    assert found["p0l2–p0s0"].state == found["p0l2–p0s1"].state == OK
    assert found["p0l2–p0s2"].state == LOSSY
    assert found["p0l2–p0s2"].loss == pytest.approx(0.5)


def test_a_port_without_carrier_is_called_down_and_what_is_behind_it_unknown():
    found = states(leaf(0, 0, port=2), spine(0, 0, 0, port=2), up={1: True, 2: False})
    assert found["h3–p1l2"].blame == "h3 port 2 is down"
    assert found["p1l2–p1s0"].state == UNKNOWN


def test_a_dead_leaf_is_told_from_a_dead_port():
    found = states(leaf(9, 20, run=9), spine(0, 9, 20, run=9))
    assert found["h3–p0l2"].state == DOWN
    assert "is up but passes nothing" in found["h3–p0l2"].blame
    assert found["p0l2–p0s0"].state == UNKNOWN


def test_a_dead_spine_link_is_down_before_the_window_has_filled_with_losses():
    found = states(leaf(0), spine(0, 8, run=8), spine(1, 8, run=0))
    assert found["p0l2–p0s0"].blame == "p0l2–p0s0 passes nothing"
    assert found["p0l2–p0s1"].state == LOSSY


def test_one_or_two_losses_and_few_probes_are_nothing_to_go_by():
    found = states(leaf(0), spine(0, 2), spine(1, 4, 8))
    assert found["p0l2–p0s0"].state == OK
    assert found["p0l2–p0s1"].state == UNKNOWN


def test_a_core_link_that_loses_a_fifth_is_blamed_and_not_the_links_before_it():
    found = states(leaf(0), spine(0, 0), spine(1, 0), core(0, 0, 18), core(1, 0, 0), core(2, 1, 1))
    assert found["p0s0–p0c0"].blame == "p0s0–p0c0 is losing 36%"
    assert {name for name, link in found.items() if link.state != OK} == {"p0s0–p0c0"}


def test_cores_behind_a_lossy_spine_link_are_not_blamed_and_a_worse_one_is():
    found = states(leaf(0), spine(0, 18), core(0, 0, 22), core(1, 0, 15), core(2, 0, 40))
    assert found["p0l2–p0s0"].state == LOSSY
    assert found["p0s0–p0c0"].state == found["p0s0–p0c1"].state == OK
    assert found["p0s0–p0c2"].state == LOSSY
    assert found["p0s0–p0c2"].loss == pytest.approx(1 - 10 / 32)


def test_a_dead_core_link_is_told_with_what_this_host_cannot_tell_from_it():
    found = states(leaf(0), spine(0, 0), core(0, 0, 8, run=8), core(1, 0, 0))
    assert found["p0s0–p0c0"].blame == "p0s0–p0c0 passes nothing: the link is dead, or p0c0 does not forward"
    assert found["p0s0–p0c1"].state == OK


def test_nothing_is_known_of_core_links_behind_a_dead_spine_or_leaf():
    for before in ((leaf(0), spine(0, 8, run=8)), (leaf(8, run=8), spine(0, 8, run=8))):
        assert states(*before, core(0, 0, 8, run=8))["p0s0–p0c0"].state == UNKNOWN


def test_a_core_whose_probes_are_lost_a_moment_before_the_spine_s_is_not_blamed():
    """A link dies between two probes of a turn: the core has lost its eighth, the spine its seventh."""
    assert states(leaf(0), spine(0, 7, run=7), core(0, 0, 8, run=8))["p0s0–p0c0"].state != DOWN


@given(st.integers(0, 2**32), st.floats(0, 0.5), st.floats(0, 0.5))
@settings(max_examples=60)
def test_the_loss_of_a_core_link_is_told_apart_from_the_links_before_it(seed, nearer, farther):
    rng = random.Random(seed)

    def probes(*losses: float) -> int:
        return sum(any(rng.random() < loss for loss in losses) for _ in range(4000))

    found = states(leaf(0, 4000), spine(0, probes(nearer), 4000), core(0, 0, probes(nearer, farther), 4000))
    assert found["p0s0–p0c0"].loss == pytest.approx(farther, abs=0.1)
    if farther == 0:
        assert found["p0s0–p0c0"].state == OK
    if farther > 0.1:
        assert found["p0s0–p0c0"].state == LOSSY


@given(st.integers(1, 200), st.integers(1, 200), st.data())
def test_a_further_loss_is_the_likelihood_ratio_of_two_binomials(nearer_sent, sent, data):
    """The logarithms of the whole likelihoods, binomial coefficients and all, with one rate and with two."""
    nearer_lost, lost = data.draw(st.integers(0, nearer_sent)), data.draw(st.integers(0, sent))

    def likelihood(of: int, among: int, rate: float) -> float:
        return (
            math.log(math.comb(among, of))
            + (of and of * math.log(rate))
            + (among - of and (among - of) * math.log(1 - rate))
        )

    together = (nearer_lost + lost) / (nearer_sent + sent)
    two = likelihood(nearer_lost, nearer_sent, nearer_lost / nearer_sent) + likelihood(lost, sent, lost / sent)
    one = likelihood(nearer_lost, nearer_sent, together) + likelihood(lost, sent, together)
    found = blame.further(spine(0, nearer_lost, nearer_sent), core(0, 0, lost, sent))
    more = lost / sent > nearer_lost / nearer_sent
    assert found == pytest.approx(2 * (two - one) if more else 0.0, abs=1e-6)


def test_merging_blames_a_core_when_no_pod_reaches_it_and_one_link_when_one_does_not():
    dead = [LinkState(f"p0s{index}", "p0c0", DOWN, 1.0, "x") for index in (0, 2)]
    fine = LinkState("p0s0", "p0c1", OK, 0.0, "")
    merged = merge([[dead[0], fine], [dead[1]]])
    assert [link.blame for link in merged if link.state == DOWN] == ["p0c0 passes nothing on any link"] * 2
    merged = merge([[dead[0], fine], [LinkState("p0s2", "p0c0", OK, 0.0, "")]])
    assert [link.blame for link in merged if link.state == DOWN] == ["x"]


def test_a_link_of_two_leaves_that_both_probe_is_one_link():
    (link,) = merge([[LinkState("p0l0", "p0l1", LOSSY, 0.2, "x")], [LinkState("p0l1", "p0l0", LOSSY, 0.4, "x")]])
    assert (link.a, link.b, link.blame) == ("p0l0", "p0l1", "p0l0–p0l1 is losing 30%")


def test_merging_blames_a_spine_when_no_leaf_reaches_it_and_a_leaf_when_no_host_does():
    def view(host: str, which: str, dead: str) -> list[LinkState]:
        bad = LinkState(f"p0{which}", "p0s1", DOWN, 1.0, f"p0{which}–p0s1 passes nothing")
        good = LinkState(f"p0{which}", "p0s0", OK, 0.0, "")
        return [LinkState(host, f"p0{which}", OK, 0.0, ""), bad if dead == "p0s1" else good, good]

    merged = merge([view("h0", "l0", "p0s1"), view("h1", "l1", "p0s1"), view("h2", "l1", "p0s1")])
    assert [link.blame for link in merged if link.state == DOWN] == ["p0s1 passes nothing on any link"] * 2
    dead_leaf = [
        [LinkState(host, "p0l0", DOWN, 1.0, f"{host}–p0l0"), LinkState("p0l0", "p0s0", UNKNOWN, 0.0, "")]
        for host in ("h0", "h1")
    ]
    healthy = [LinkState("h4", "p0l1", OK, 0.0, ""), LinkState("p0l1", "p0s0", OK, 0.0, "")]
    merged = merge([*dead_leaf, healthy])
    assert {link.blame for link in merged if link.state == DOWN} == {"p0l0 passes nothing on any link"}


def test_hosts_that_disagree_about_a_link_are_averaged():
    def view(state: str, loss: float) -> list[LinkState]:
        return [LinkState("p0l0", "p0s0", state, loss, "x" if state == LOSSY else "")]

    (link,) = merge([view(LOSSY, 0.2), view(LOSSY, 0.1), view(OK, 0.0)])
    assert (link.state, round(link.loss, 3), link.blame) == (LOSSY, 0.1, "p0l0–p0s0 is losing 10%")
    (link,) = merge([view(LOSSY, 0.2), view(OK, 0.0), view(OK, 0.0)])
    assert link.state == OK


@given(st.integers(0, 2**32), st.floats(0, 0.6), st.floats(0, 0.6))
@settings(max_examples=60)
def test_measured_losses_come_near_the_true_ones_whatever_both_links_lose(seed, host_loss, fabric_loss):
    rng = random.Random(seed)

    def probes(*losses: float) -> int:
        return sum(any(rng.random() < loss for loss in losses) for _ in range(4000))

    found = states(leaf(probes(host_loss), 4000), spine(0, probes(host_loss, fabric_loss), 4000))
    assert found["h3–p0l2"].loss == pytest.approx(host_loss, abs=0.05)
    if found["h3–p0l2"].state != DOWN:
        assert found["p0l2–p0s0"].loss == pytest.approx(fabric_loss, abs=0.1)


# --- the prober in virtual time -----------------------------------------------------------------------------------


class ProbedFabric:
    """A prober whose frames come back after a round trip, unless a link on their way loses them.

    A link is named after its upper end and the port. With `cores`, each spine has so many of its own.
    """

    def __init__(
        self, spines: int = 3, planes: int = 2, deny: Denylist | None = None, cores: int = 0, **options: Any
    ) -> None:
        targets = [(f"p{plane}l0", plane, "") for plane in range(planes)]
        targets += [(f"p{plane}s{index}", plane, "") for plane in range(planes) for index in range(spines)]
        targets += [
            (f"p{plane}c{index * cores + number}", plane, f"p{plane}s{index}")
            for plane in range(planes)
            for index in range(spines)
            for number in range(cores)
        ]
        rows = [
            {"target": name, "port": plane + 1, "da": "fcbb:bbbb:3000::", "behind": behind}
            for name, plane, behind in targets
        ]
        data = example(0, planes=planes, evs_per_plane=spines * max(1, cores), self_probes=rows)
        if cores:
            chosen = [f"{behind}+{name}" for name, _plane, behind in targets if behind]
            for row, via in zip(data["destinations"]["h1"]["paths"], chosen, strict=True):
                row["via"] = via
        self.profile = profile.parse(data)
        self.now_ns = 0
        settings = {"interval_ns": 1_000_000, "window": 50, **options}
        self.prober = PathProber(self.profile, denylist=deny, now_ns=0, **settings)
        self.targets = [(name, behind) for name, _plane, behind in targets]
        self.loss: dict[str, float] = {}
        self.random = random.Random(1)
        self.sent: list[tuple[int, int, bytes]] = []
        self.flying: list[tuple[int, int, bytes]] = []

    def run(self, seconds: float) -> list[dict[str, Any]]:
        end_ns = self.now_ns + int(seconds * 1e9)
        while (due_ns := min([self.prober.next_timer_ns(), *(at_ns for at_ns, _, _ in self.flying)])) < end_ns:
            self.now_ns = due_ns
            back = [item for item in self.flying if item[0] <= due_ns]
            self.flying = [item for item in self.flying if item[0] > due_ns]
            for _, port, frame in back:
                self.prober.receive(port, [frame], due_ns)
            self.prober.handle_timer(due_ns)
            for port, frame in self.prober.packets_to_send(due_ns):
                self.sent.append((due_ns, port, frame))
                target, behind = self.targets[int.from_bytes(frame[110:112], "big")]
                crossed = ["h0", *([] if "l" in target else [name for name in (behind, target) if name])]
                if not any(self.random.random() < self.loss.get(f"{link}@{port}", 0) for link in crossed):
                    self.flying.append((due_ns + 1_000_000, port, frame))
        self.now_ns = end_ns
        return [dict(event.fields) for event in self.prober.events()]


def bad(events: list[dict[str, Any]]) -> list[str]:
    return [event["blame"] for event in events if event["state"] in (LOSSY, DOWN)]


def test_a_healthy_fabric_is_reported_once_and_then_silence():
    fabric = ProbedFabric()
    events = fabric.run(2)
    assert {event["state"] for event in events} == {UNKNOWN, OK}
    assert {(event["a"], event["b"]) for event in events} == {
        ("h0", "p0l0"),
        ("h0", "p1l0"),
        *((f"p{plane}l0", f"p{plane}s{index}") for plane in range(2) for index in range(3)),
    }
    assert fabric.run(2) == []


def test_losses_death_and_healing_are_told_with_the_right_name():
    fabric = ProbedFabric()
    fabric.run(1)
    fabric.loss = {"p1s2@2": 0.3}
    events = fabric.run(2)
    assert {event["b"] for event in events} == {"p1s2"}
    assert any(text.startswith("p1l0–p1s2 is losing") for text in bad(events))
    fabric.loss = {"p1s2@2": 1.0}
    assert "p1l0–p1s2 passes nothing" in bad(fabric.run(1))
    fabric.loss = {}
    events = fabric.run(3)
    assert [(event["b"], event["state"]) for event in events][-1] == ("p1s2", OK)


def test_a_lossy_link_is_told_again_until_the_estimate_is_right():
    fabric = ProbedFabric(window=200)
    fabric.run(2)
    fabric.loss = {"p1s2@2": 0.3}
    told = [event["loss"] for event in fabric.run(4) if event["state"] == LOSSY]
    assert told[0] < 0.1, "named while most of the window was still healthy"
    assert 0.2 < told[-1] < 0.4
    assert len(told) < 15


def test_a_port_that_goes_down_is_not_probed_and_starts_afresh():
    fabric = ProbedFabric()
    fabric.run(1)
    fabric.prober.port_changed(2, False)
    fabric.sent.clear()
    assert bad(fabric.run(1)) == ["h0 port 2 is down"]
    assert {port for _, port, _ in fabric.sent} == {1}
    fabric.prober.port_changed(2, True)
    assert [event["state"] for event in fabric.run(2) if event["a"] == "h0"][-1] == OK


def test_probes_are_no_more_than_the_interval_allows():
    fabric = ProbedFabric(interval_ns=10_000_000)
    fabric.run(3)
    assert 298 <= len(fabric.sent) <= 301
    assert all(len(frame) < 128 for _, _, frame in fabric.sent)


def test_the_denylist_gets_the_evs_over_bad_links_and_loses_them_when_they_heal():
    denylist = Denylist(lambda denied, now_ns: None)
    denylist.set(CONTROL, {("h1", 0x10002)}, 0)
    fabric = ProbedFabric(deny=denylist)
    fabric.run(1)
    fabric.loss = {"p0s1@1": 0.5}
    fabric.run(2)
    assert denylist.all() == {("h1", 0x10002), ("h1", 1)}
    fabric.loss = {"h0@1": 0.4}  # lossy but up: MRC cannot tell which end, so the whole plane
    fabric.run(2)
    assert {("h1", 0), ("h1", 1), ("h1", 2), ("h1", 0x10002)} == denylist.all()
    fabric.loss = {}
    fabric.run(4)
    assert denylist.all() == {("h1", 0x10002)}
    fabric.loss = {"h0@1": 1.0, "h0@2": 1.0}
    fabric.run(2)
    assert len(denylist.all()) < 6, "a destination is never left without an EV"


def test_a_core_link_is_named_and_its_evs_are_denied_until_it_heals():
    denylist = Denylist(lambda denied, now_ns: None)
    fabric = ProbedFabric(spines=2, cores=2, deny=denylist)
    fabric.run(1)
    fabric.loss = {"p0c1@1": 1.0}
    events = fabric.run(2)
    assert {(event["a"], event["b"]) for event in events} == {("p0s0", "p0c1")}
    assert bad(events)[-1].startswith("p0s0–p0c1 passes nothing")
    (path,) = [path for path in fabric.profile.destinations["h1"].paths if path.via == "p0s0+p0c1"]
    assert denylist.all() == {("h1", path.ev)}
    fabric.loss = {"p1s1@2": 0.5}  # and with a spine's link, those of its cores
    fabric.run(4)
    over = {path.ev for path in fabric.profile.destinations["h1"].paths if (path.via or "").startswith("p1s1+")}
    assert denylist.all() == {("h1", ev) for ev in over}


def test_no_core_is_ever_blamed_for_a_lossy_link_before_it():
    for seed in range(20):
        fabric = ProbedFabric(spines=2, cores=2)
        fabric.random.seed(seed)
        fabric.run(1)
        fabric.loss = {"p0s1@1": 0.36}
        assert {event["b"] for event in fabric.run(3) if event["state"] in (LOSSY, DOWN)} == {"p0s1"}
        fabric.loss = {}
        assert bad([event for event in fabric.run(2) if "c" in event["b"]]) == []


@given(st.lists(st.binary(max_size=160), max_size=5), st.integers(-1, 9))
@settings(max_examples=100)
def test_any_bytes_that_arrive_are_survived_and_never_count_as_a_probe(frames, port):
    fabric = ProbedFabric()
    fabric.run(0.1)
    before = fabric.prober.link_map()
    fabric.prober.receive(port, frames, fabric.now_ns)
    assert fabric.prober.link_map() == before


def test_a_probe_answered_twice_counts_once():
    fabric = ProbedFabric()
    fabric.run(0.5)
    _, port, frame = fabric.sent[-20]
    before = fabric.prober.link_map()
    fabric.prober.receive(port, [frame, frame], fabric.now_ns)
    assert fabric.prober.link_map() == before


def test_what_cannot_be_probed_is_refused():
    with pytest.raises(ProberError, match="no self_probes in its profile"):
        PathProber(profile.parse(example(0)), interval_ns=10**6, window=50, denylist=None, now_ns=0)
    many = profile.parse(example(0, self_probes=[{"target": "p0l0", "port": 1, "da": "fcbb:bbbb:3000::"}]))
    many = replace(many, self_probes=tuple(many.self_probes) * 65_537)
    with pytest.raises(ProberError, match="h0 has 65,537 self_probes; it must have at most 65,536"):
        PathProber(many, interval_ns=10**6, window=50, denylist=None, now_ns=0)
    with pytest.raises(ProberError, match="at least 100000"):
        ProbedFabric(interval_ns=5)
    with pytest.raises(ProberError, match=f"from {blame.PROBES_MIN} to 100000 probes"):
        ProbedFabric(window=3)


Rows = Set[tuple[str, int]]
rows = st.frozensets(st.tuples(st.sampled_from(["h1", "h2"]), st.integers(0, 3)))


def test_a_path_that_two_deny_is_free_when_both_have_let_go() -> None:
    told: list[Rows] = []
    denylist = Denylist(lambda denied, now_ns: told.append(denied))
    denylist.set(PROBER, {("h1", 1)}, 0)
    denylist.set(FAULTS, {("h1", 1), ("h1", 2)}, 0)
    assert denylist.without(PROBER) == {("h1", 1), ("h1", 2)}
    denylist.set(PROBER, set(), 0)
    assert told[-1] == {("h1", 1), ("h1", 2)}
    denylist.set(FAULTS, set(), 0)
    assert told[-1] == set()


@given(st.lists(st.tuples(st.sampled_from(OWNERS), rows), max_size=20))
def test_whatever_happens_the_transport_has_what_the_owners_last_said(said: list[tuple[str, Rows]]) -> None:
    told: list[Rows] = [frozenset()]
    denylist = Denylist(lambda denied, now_ns: told.append(denied))
    for owner, denied in said:
        denylist.set(owner, denied, 0)
    last = dict(said)
    assert told[-1] == frozenset().union(*last.values()) == denylist.all()
    for owner in OWNERS:
        assert denylist.of(owner) == last.get(owner, frozenset())


def test_nobody_sets_the_probers_share_by_request() -> None:
    assert set(BY_REQUEST) == {CONTROL, FAULTS}
