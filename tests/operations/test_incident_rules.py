"""Incidents on paper: what is drawn, how answers are read and scored, and what is refused."""

import re

import pytest

from operations.incident import solving
from operations.incident.draw import Hidden, draw
from operations.incident.kind import KINDS, LEVELS, AnswerError, canonical, check_answer, kinds_of, nodes_of, type_of
from operations.incident.score import score
from operations.incident.words import ARGUMENTS, WordsError, parse, spelled
from tests.helpers.incidents import TINY

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
