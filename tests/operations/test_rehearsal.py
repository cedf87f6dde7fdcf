"""Changes on paper and one short run: what is refused, what has no path, what the job notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from operations.rehearsal.change import ACTIONS, ChangeError, read
from operations.rehearsal.rehearse import Outcome, Statement, background, compared, outage_s, rehearsed
from studies.sweeping.proportion import share
from topo.fault import VERBS

CHANGES = Path(__file__).parents[2] / "docs" / "changes"
HEAD = 'name = "a change"\nplan = "tiny"\nseconds = 4\nflaps = 0\n'
STEP = '[[step]]\ndo = "cut"\ntarget = "p0l0-p0s0"\nat_s = 1\n'

REBOOT = STEP.replace("cut", "reboot").replace("p0l0-p0s0", "p0s0")


def written(folder: Path, text: str) -> Path:
    path = folder / "change.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", r"change.toml: Invalid value"),
        (HEAD, r"step is missing"),
        (HEAD.replace('"tiny"', '"huge"') + STEP, r"change.toml:\d: .*huge.*tiny"),
        (HEAD.replace("seconds = 4", "seconds = 400") + STEP, r"change.toml:3: seconds is 400; it must be .*120"),
        ("colour = 1\n" + HEAD + STEP, r"change.toml:1: colour is no key here; valid: name, plan"),
        (HEAD + STEP + STEP.replace('"cut"', '"fix"'), r"toml:9: step 2: step\[1\].do is 'fix'; it must be one of"),
        (HEAD + STEP.replace("p0l0-p0s0", "p0l0-p9s0"), r"change.toml:5: step 1: .*p9s0"),
        (HEAD + STEP.replace("at_s = 1", "at_s = 9"), r"change.toml:5: step 1: step\[0\].at_s is 9; it must be .*4"),
        (HEAD + STEP + "for_s = 8\n", r"change.toml:5: step 1: step\[0\].for_s is 8"),
        (HEAD + STEP.replace("cut", "rate"), r"change.toml:5: step 1: rate needs mbps"),
        (
            HEAD + STEP.replace("cut", "reboot").replace("p0l0-p0s0", "p0s0") + "for_s = 1\n",
            r"reboot is over by itself",
        ),
    ],
)
def test_a_bad_change_file_names_line_rule_and_choices(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match=said):
        read(written(tmp_path, text))


def test_every_action_is_a_fault_verb() -> None:
    assert set(ACTIONS.values()) <= set(VERBS)


@pytest.mark.parametrize(
    ("name", "outage"),
    [("spines-one-by-one", 0), ("spines-at-once", 0), ("a-plane-at-a-time", 0), ("single-homed-leaf", 1)],
)
def test_shipped_changes_leave_paths_or_are_refused_to_be_called_safe(name: str, outage: int) -> None:
    planned = read(CHANGES / f"{name}.toml")
    assert outage_s(planned) == outage
    quiet = [Outcome(seed, False, 1.0, 1.0, 0, None, (), 0) for seed in range(1000)]
    statement = Statement(planned, quiet, (), share(0, 1000), outage_s(planned))
    assert statement.verdict == ("not safe" if outage else "safe")


def test_a_drain_of_every_spine_leaves_no_path(tmp_path: Path) -> None:
    steps = "".join(
        f'[[step]]\ndo = "drain"\ntarget = "p{plane}s{n}"\nat_s = 1\nfor_s = 2\n' for plane in (0, 1) for n in (0, 1)
    )
    assert outage_s(read(written(tmp_path, HEAD + steps))) == 2


def test_the_background_is_drawn_from_the_seed_and_leaves_the_change_alone(tmp_path: Path) -> None:
    planned = read(written(tmp_path, HEAD + STEP))
    drawn = [background(planned, seed, 8) for seed in range(20)]
    assert drawn[3] == background(planned, 3, 8)
    assert len(set(drawn)) == 20
    assert all(fault.target != "p0l0-p0s0" for faults in drawn for fault in faults)


def test_two_orders_are_compared_seed_by_seed(tmp_path: Path) -> None:
    planned = read(written(tmp_path, HEAD + STEP))

    def side(*slowdowns: float) -> Statement:
        outcomes = [Outcome(n, False, value, 1.0, 0, None, (), 0) for n, value in enumerate(slowdowns)]
        return Statement(planned, outcomes, (), share(0, len(outcomes)), 0.0)

    found = compared(side(1.0, 1.2, 1.1, 1.4, 1.3), side(2.0, 2.1, 2.2, 2.3, 2.4))
    assert found is not None
    assert (round(found.mean, 6), found.clear) == (1.0, True)
    close = compared(side(1.0, 1.2, 1.1, 1.4, 1.3), side(1.2, 1.0, 1.3, 1.1, 1.4))
    assert close is not None
    assert not close.clear


@pytest.mark.slow
def test_a_switch_that_is_the_only_one_is_noticed_and_a_drain_is_not(tmp_path: Path) -> None:
    bad = rehearsed(read(CHANGES / "single-homed-leaf.toml"), [1])
    assert bad.outcomes[0].noticed
    assert bad.by_step() == [1]
    drained = HEAD + STEP.replace("cut", "drain").replace("p0l0-p0s0", "p0s0") + "for_s = 2\n"
    good = rehearsed(read(written(tmp_path, drained)), [1])
    assert not good.outcomes[0].noticed
    assert good.outcomes == rehearsed(read(written(tmp_path, drained)), [1]).outcomes
