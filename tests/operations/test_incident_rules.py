"""Incidents on paper: what is drawn, how answers are scored, signs in answers, and surveys."""

import re
from typing import Any

import pytest

from operations.incident import solving, tables
from operations.incident.draw import Hidden, draw
from operations.incident.kind import KINDS, LEVELS, AnswerError, canonical, check_answer, kinds_of, nodes_of, type_of
from operations.incident.live_incident import files
from operations.incident.score import score
from operations.incident.signs import CollectedAnswers, findings
from operations.incident.words import ARGUMENTS, WordsError, parse, spelled
from tests.helpers.incidents import TINY
from tests.incidents.__main__ import main
from tests.incidents.survey import leaks
from topo import Plan, load_plan
from topo.graph import link_at, ports
from topo.planfile import parse_plan

SEEDS = range(300)


@pytest.mark.parametrize("level", LEVELS)
def test_every_kind_of_a_level_is_drawn_and_no_other(level: int) -> None:
    drawn = [draw(seed, level) for seed in SEEDS]
    assert {one.kind for incident in drawn for one in incident.hidden} == {kind.name for kind in kinds_of(level)}
    nothing = sum(not incident.hidden for incident in drawn)
    assert nothing == 0 if level == 1 else 15 <= nothing <= 75  # an eighth of 300


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_that_is_drawn_touches_another_thing(level: int) -> None:
    for seed in SEEDS:
        incident = draw(seed, level)
        plan = incident.plan
        parts = [one.component for one in incident.hidden] + [odd.component for odd in incident.oddities]
        nodes = [nodes_of(plan, part.replace(">", "-")) for part in parts]
        assert len(frozenset().union(*nodes)) == sum(map(len, nodes)), (seed, parts)
        for one in incident.hidden:
            assert type_of(plan, one.component) == KINDS[one.kind].component
            assert canonical(plan, one.component) == one.component


def test_a_seed_and_a_level_give_the_same_incident_again() -> None:
    assert draw(7, 4) == draw(7, 4)
    assert draw(7, 4).hidden != draw(8, 4).hidden


@pytest.mark.parametrize(("seed", "level"), [(1, 0), (1, 6), (-1, 1), (1 << 63, 1)])
def test_a_seed_or_level_that_cannot_be_is_refused(seed: int, level: int) -> None:
    with pytest.raises(ValueError, match=r"must be between \d+ and \d+ \(got"):
        draw(seed, level)


LOSS = Hidden("one-way-loss", "p0l0>p0s0", 5.0)
SWAP = Hidden("swapped-cables", "p0l0-p0s0", 0.0, names={"other": "p0l0-p0s1"})


@pytest.mark.parametrize(
    ("hidden", "named", "word", "points", "net"),
    [
        ((), (), "right", 1.0, 1.0),
        ((), (("p0l0-p0s0", "dead-cable"),), "wrong", 0.0, -1.0),
        ((LOSS,), (("p0l0>p0s0", "one-way-loss"),), "right", 1.0, 1.0),
        ((LOSS,), (("p0s0>p0l0", "one-way-loss"),), "partly right", 0.5, 0.5),
        ((LOSS,), (("p0l0-p0s0", "dead-cable"),), "partly right", 0.5, 0.5),
        ((LOSS,), (("p0l0>p0s0", "slow-port"),), "partly right", 0.5, 0.5),
        ((LOSS,), (("p0l0>p0s1", "one-way-loss"),), "partly right", 0.5, 0.5),
        ((LOSS,), (("p1l1>p1s1", "one-way-loss"),), "wrong", 0.0, -1.0),
        ((LOSS,), (("p0l0>p0s0", "one-way-loss"), ("h0", "late-host")), "partly right", 1.0, 0.0),
        ((LOSS,), (), "wrong", 0.0, -1.0),
        ((SWAP,), (("p0l0-p0s1", "swapped-cables"),), "right", 1.0, 1.0),
        ((LOSS, SWAP), (("p0l0-p0s1", "swapped-cables"),), "partly right", 0.5, 0.5),
        ((LOSS, SWAP), (("p0l0-p0s1", "swapped-cables"), ("h1", "late-host")), "partly right", 0.5, 0.0),
        ((), (("h0", "late-host"), ("h1", "late-host"), ("h2", "late-host")), "wrong", 0.0, -1.0),
    ],
)
def test_answers_are_scored_by_component_and_kind(hidden, named, word, points, net) -> None:
    found = score(TINY, hidden, named)
    assert (found.word, found.points, found.net) == (word, points, net)


def test_two_answers_do_not_share_one_fault() -> None:
    other = Hidden("one-way-loss", "p1l0>p1s0", 5.0)
    found = score(TINY, (LOSS, other), (("p1l0>p1s0", "one-way-loss"), ("p0l0>p0s0", "one-way-loss")))
    assert found.word == "right"
    assert [one for _, _, one in found.matched] == [("p0l0>p0s0", "one-way-loss"), ("p1l0>p1s0", "one-way-loss")]


@pytest.mark.parametrize(
    ("component", "kind", "said"),
    [
        ("p0l0-p0s0", "broken", r"no kind 'broken': valid are dead-cable, .*`none` says"),
        ("p9s0", "no-trimming", r"a component must be a cable \(p0l0-p0s1\).*got 'p9s0'.*planes"),
        ("p0s0-p0s1", "dead-cable", r"no link p0s0–p0s1: p0s0 is wired to p0l0, p0l1"),
        ("h0.p7", "nic-port-down", r"h0 has the NIC ports h0.p0, h0.p1"),
        ("h0", "dead-cable", r"the component of dead-cable must be a cable, such as p0l0-p0s1 \(got the host h0\)"),
    ],
)
def test_an_answer_that_cannot_be_names_the_rule_and_the_choices(component: str, kind: str, said: str) -> None:
    with pytest.raises(AnswerError, match=said):
        check_answer(TINY, component, kind)


def test_an_answer_offers_the_kinds_of_the_incidents_level() -> None:
    for level in LEVELS:
        with pytest.raises(AnswerError) as refused:
            check_answer(TINY, "p0l0-p0s0", "no-such-kind", level)
        assert {name for name in KINDS if name in re.findall(r"[\w-]+", str(refused.value))} == {
            one.name for one in kinds_of(level)
        }


def test_recorded_paths_cover_every_kind_with_words_that_tools_know() -> None:
    assert set(solving.recorded()) == set(KINDS)
    for level in LEVELS:
        for seed in range(60):
            for one in draw(seed, level).hidden:
                for line in solving.commands(draw(seed, level).plan, one):
                    assert parse(line)[0] in ARGUMENTS
    assert parse("counters p0l0 --watch 8") == ("counters", {"target": "p0l0", "watch": 8.0})


@pytest.mark.parametrize("line", ["", "cure p0l0", "counters --watch", "wait soon", "log"])
def test_words_that_are_no_command_are_refused(line: str) -> None:
    with pytest.raises(WordsError):
        parse(line)


@pytest.mark.parametrize("line", ["counters -h", "counters p0l0 --help"])
def test_a_question_for_help_is_answered_and_ends_nothing(line: str) -> None:
    with pytest.raises(WordsError, match=r"(?s)usage: incident counters .*--watch S\s+what S seconds of lab time add"):
        parse(line)
    with pytest.raises(WordsError, match=rf"(?s)usage: incident .*{'.*'.join(ARGUMENTS)}"):
        parse("-h")


@pytest.mark.parametrize(
    "line",
    [
        "counters", "counters p0l0-p0s0 --watch 10", "inspect h0", "trace h0 h3 --ev 0x1c001",
        "capture p0l0-p0s0 --seconds 0.5 --count 7", "prober --all", "log h1 --count 200", "tables p0l0 ipv6_route",
        "wait 0.5", "exec p0l0 -- ip -s link",
    ],
)  # fmt: skip
def test_a_command_is_written_down_as_it_was_typed(line: str) -> None:
    assert spelled(*parse(line)) == line


CABLE = ("p0l0-eth3", "p0s0-eth1")
"""The ends of the cable p0l0-p0s0; p0s1-eth1 is the other end of p0l0-p0s1."""
Answers = list[tuple[str, dict[str, Any]]]


def look(at_s: float = 5.0, up_s: dict[str, float] | None = None, **changed: Any) -> tuple[str, dict[str, Any]]:
    """`inspect` of a sound fabric, but for these interfaces and switches."""
    nodes = [
        {
            "node": node.name,
            "up_s": (up_s or {}).get(node.name, at_s),
            "interfaces": [
                {"state": "up", "carrier_changes": 0, "rate_bps": link_at(TINY, ref).rate_bps}
                | changed.get(ref.interface.replace("-", "_"), {})
                for ref in ports(TINY, node)
            ],
        }
        for node in TINY.nodes()
    ]
    return "inspect", {"at_s": at_s, "nodes": nodes}


def ends(**facts: Any) -> dict[str, Any]:
    """The same of both ends of one cable."""
    return {end.replace("-", "_"): facts for end in CABLE}


def counted(data: int = 1000, **changed: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """`counters --watch 1`: each port between switches sent this many packets of data, and all of them arrived."""
    refs = [ref for switch in TINY.switches() for ref in ports(TINY, switch)]
    rows = [
        {"IFACE": ref.interface, "TX_OK": data, "RX_OK": data, "ECN_MARKED": 0, "DROPS": {}}
        | changed.get(ref.interface.replace("-", "_"), {})
        for ref in refs
    ]
    classes = [{"IFACE": ref.interface, "CLASS": "trimmable", "TX": data} for ref in refs]
    return "counters", {"watched_s": 1.0, "ports": rows, "classes": classes}


def held(without: int | None = None, trims: str = "") -> tuple[str, dict[str, Any]]:
    """`tables p0l0`: as planned, but for one route, or with another action where packets are trimmed."""
    rows = tables.planned(TINY, TINY.switch_node("p0l0"))
    route = [row for row in rows if row[0] == tables.ROUTES][without] if without is not None else None
    entries = [
        {"table": table, "match": match, "action": trims if trims and action.startswith(tables.TRIMS) else action}
        for table, match, action in rows
        if (table, match, action) != route
    ]
    return "tables", {"node": "p0l0", "entries": entries}


def denied(via: str) -> tuple[str, dict[str, Any]]:
    return "paths", {"source": "h0", "paths": [{"via": via, "state": "denied"}, {"via": "p1s1", "state": "good"}]}


def stalls(*late_ms: int) -> tuple[str, dict[str, Any]]:
    return "log", {"node": "h1", "lines": [{"kind": "stall", "late_ns": late * 1_000_000} for late in late_ms]}


SOUND: dict[str, Answers] = {
    "all is well": [look(), counted(), held(), stalls(20, 30)],
    "one stall": [stalls(500)],
    "a ticket's drain": [denied("p0s0")],
    "a carrier that changed once": [look(), look(6.0, **ends(carrier_changes=1))],
    "seven lost of a thousand": [counted(p0s0_eth1={"RX_OK": 993})],
    "one end without carrier": [look(p0l0_eth3={"state": "down"})],
}
SIGNS: dict[str, tuple[str, Answers]] = {
    "dead-cable": ("p0l0-p0s0", [look(**ends(state="down", carrier_changes=1))]),
    "nic-port-down": ("h0.p0", [look(h0_p0={"state": "off"})]),
    "flapping-cable": ("p0l0-p0s0", [look(), look(6.0, **ends(carrier_changes=4))]),
    "wrong-rate": ("p0l0-p0s0", [look(**ends(rate_bps=1_000_000))]),
    "rebooting-switch": ("p1s0", [look(5.0), look(8.0, {"p1s0": 1.0})]),
    "one-way-loss": ("p0l0>p0s0", [counted(p0s0_eth1={"RX_OK": 940})]),
    "slow-port": ("p0l0>p0s0", [counted(100, p0l0_eth3={"ECN_MARKED": 60})]),
    "missing-entry": ("p0l0", [held(without=0)]),
    "no-trimming": ("p0l0", [held(trims=f"{tables.DROPS}(10)")]),
    "wrong-threshold": ("p0l0", [held(trims=f"{tables.TRIMS}(1)")]),
    "late-host": ("h1", [stalls(120, 500)]),
    "denied-path": ("h0", [denied("p1s0")]),
    "swapped-cables": (
        "p0l0-p0s0",
        [counted(p0s0_eth1={"DROPS": {"unknown_usid": 3}}, p0s1_eth1={"DROPS": {"unknown_usid": 1}})],
    ),
}  # fmt: skip


def seen(answers: Answers) -> set[tuple[str, str]]:
    collected = CollectedAnswers(TINY, tickets=["p0s0 is drained for maintenance"])
    for tool, answer in answers:
        collected.take(tool, answer)
    return {(one.kind, one.component) for one in findings(collected)}


@pytest.mark.parametrize("name", SOUND)
def test_what_a_sound_fabric_answers_is_no_sign(name: str) -> None:
    assert seen(SOUND[name]) == set()


@pytest.mark.parametrize("kind", SIGNS)
def test_a_sign_names_its_kind_and_its_component_and_nothing_else(kind: str) -> None:
    component, answers = SIGNS[kind]
    assert seen(answers) == {(kind, component)}


def test_incidents_of_all_levels_are_consistent_and_a_naive_solver_finds_few(capsys) -> None:
    status = main(["--count", "15", "--seed", "38"])
    said = capsys.readouterr().out
    print(said)
    assert status == 0, said
    (upper,) = [line.split() for line in said.splitlines() if line.startswith("3 to 5")]
    incidents, naive = int(upper[3]), int(upper[8])
    assert (incidents, 3 * naive <= incidents) == (9, True)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('{"drop_loss": 0}', ()),
        ("p0l0: no-trimming", ("no-trimming",)),
        ("the onset", ("onset",)),
        ("seed 4611686018427387000", ("4611686018427387000",)),
        ("bytes 14611686018427387000", ()),
    ],
)
def test_secrets_are_found_wherever_they_are(said: str, found: tuple[str, ...]) -> None:
    assert leaks(draw(4611686018427387000, 3), ["nothing", said]) == found


def test_names_of_files_and_folders_are_looked_at_as_well(tmp_path) -> None:
    (tmp_path / "dead-cable").mkdir()
    (tmp_path / "dead-cable" / "late-host.txt").write_bytes(b"\xff flapping-cable")
    assert leaks(draw(1, 3), files(tmp_path)) == ("dead-cable", "flapping-cable", "late-host")


NAMED = (
    'name = "named"\n[fabric]\nplanes = 4\nleaves = 8\nspines = 4\nhosts_per_leaf = 2\n'
    '[names]\np0l0 = "p0-leaf00"\np0s1 = "p0-spine01"\nh5 = "gpu05"\n'
)


@pytest.mark.parametrize("level", LEVELS)
def test_an_incident_is_hidden_in_another_fabric_and_named_by_its_names(level: int) -> None:
    plan = parse_plan(NAMED)
    for seed in range(20):
        incident = draw(seed, level, plan)
        assert (incident.plan.leaves, incident.plan.names) == (8, plan.names)
        assert all(nodes_of(plan, one.component.replace(">", "-")) for one in incident.hidden)
    for told, own in (
        ("p0-spine01-p0-leaf00", "p0l0-p0s1"),
        ("p0-leaf00>p0-spine01", "p0l0>p0s1"),
        ("gpu05.p3", "h5.p3"),
    ):
        assert canonical(plan, told) == own


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (load_plan("pods"), "must be a leaf-spine fabric with uSIDs, two leaves and two spines"),
        (load_plan("tiny").single_plane(), "must be a leaf-spine fabric with uSIDs"),
        (load_plan("tiny", {"fabric.hosts_per_leaf": "3"}), "must have as many spines as hosts per leaf, 3"),
    ],
)
def test_a_fabric_without_room_for_an_incident_is_refused(plan: Plan, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        draw(1, 1, plan)
