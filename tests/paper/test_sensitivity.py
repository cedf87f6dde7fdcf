"""DCQCN's constants one by one: each run changes what its row says and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.main import main
from endpoint.roce.dcqcn_setting import PUBLISHED, Absolute, dcqcn_setting
from paper.figure import Measured, Part
from paper.figures.collectives.figure_16 import RING_16
from paper.outcome import number
from paper.random_loss import quantity_name
from paper.variations import sensitivity
from paper.variations.sensitivity import Knob, KnobRow, knobs, part


def test_every_constant_is_changed_down_and_up_and_by_itself() -> None:
    settings = [dcqcn_setting(knob.setting) for knob in knobs() if knob.seed == 1]
    assert settings[0] == PUBLISHED
    changed: list[str] = []
    for setting in settings[1:13]:
        differing = [
            name
            for name in Absolute.__dataclass_fields__
            if getattr(setting.absolute, name) != getattr(PUBLISHED.absolute, name)
        ] + (["alpha_gain"] if setting.alpha_gain != PUBLISHED.alpha_gain else [])
        assert len(differing) == 1
        changed += differing
    assert changed == [name for name in dict.fromkeys(changed) for _ in range(2)]
    assert len(set(changed)) == 6
    assert len({knob.title for knob in knobs()}) == len(knobs())


def test_a_knob_reaches_the_run() -> None:
    usual = part(RING_16, 16, knobs()[0], short=False)
    marked = part(RING_16, 16, Knob("marks", marks=4.0), short=False)
    assert marked.plan.queues.ecn_max == 4 * usual.plan.queues.ecn_max
    assert marked.plan.queues.trim == usual.plan.queues.trim
    changed = part(RING_16, 16, Knob("gain", "published:alpha_gain=0.5"), short=False)
    assert changed.transport.settings["dcqcn_setting"] == "published:alpha_gain=0.5"
    assert part(RING_16, 16, Knob("none", controlled=False), short=False).transport.settings["dcqcn"] is False
    assert not usual.faults
    assert (usual.seed, part(RING_16, 16, Knob("hash", seed=4), short=False).seed) == (1, 4)


def test_the_table_counts_what_is_ahead_of_mrc(tmp_path: Path) -> None:
    def run(one: Part, scratch: Path) -> Measured:
        return Measured({"busbw": 100.0 if one.transport.agent == "mrc" else 110.0 if "marks" in one.name else 50.0})

    told: list[str] = []
    made = sensitivity.found(False, tmp_path, told.append, run)
    assert len(told) == sensitivity.total() == 2 * (1 + len(knobs()))
    shown = sensitivity.markdown(made, short=False)
    assert "| the paper's RoCE | 101.5 |  | 331.4 | |" in shown
    assert "| MRC, strict | 100 | 200% | 100 | 200% |" in shown
    assert "| marks × 4 | 110 | 220% | 110 | 220% |" in shown
    flat = shown.replace("\n", " ")
    assert flat.count(f"RoCE is ahead of MRC in 2 of {len(knobs())} runs.") == 2
    changes = len(knobs()) - 1 - len(sensitivity.SEEDS)
    assert f"from 50 to 110 Gb/s, and 2 of {changes} changes are above the published setting." in flat
    assert "Another hash alone gives from 50 to 50" in flat


def test_settings_under_which_the_ring_did_not_end_are_neither_compared_nor_a_crash() -> None:
    def told(published: float, changed: float) -> str:
        others = [KnobRow(knob.title, (changed, 1.0)) for knob in knobs()[1:]]
        return sensitivity.said(
            [KnobRow("MRC, strict", (300.0, 1.0)), KnobRow("as published", (published, 1.0)), *others]
        )

    count = len(knobs()) - 1 - len(sensitivity.SEEDS)
    assert f"from 40 to 50 Gb/s, and {count} of {count} changes are above the published setting" in told(40.0, 50.0)
    assert f"from 50 to 50 Gb/s, and {count} of {count} changes are above the published setting" in told(0.0, 50.0)
    assert "does not end under any setting" in told(0.0, 0.0)


def test_pages_of_their_own_are_made_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "9a", "dcqcn", "--runs", str(tmp_path)]) == 2
    assert "dcqcn is made alone (got 9a dcqcn)" in capsys.readouterr().err


def test_the_published_setting_in_docs_is_that_of_the_figures() -> None:
    """Both pages are made by runs of the same parts; a row over many seeds has those of this page among them."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    known = {
        (row["figure"], row["quantity"]): row for row in json.loads((docs / "reproduction.json").read_text())["rows"]
    }
    page = (docs / "dcqcn.md").read_text()
    table = {
        title: cells[::2]
        for title, *cells in (line.strip("| ").split(" | ") for line in page.splitlines() if "|" in line)
    }
    hashed = [cells for title, cells in table.items() if title.startswith("as published")]
    assert len(hashed) == 1 + len(sensitivity.SEEDS)
    for column, (_, one, size, _) in enumerate(sensitivity.WORKLOADS):
        row = known[one.figure, quantity_name(sensitivity.ROCE, 0.0, size)]
        values = [float(cells[column]) for cells in hashed]
        if row["interval"] is None:
            assert values[0] == float(number(row["ours"]))
        else:
            lowest, highest = (float(number(end)) for end in row["interval"])
            assert lowest <= min(values) <= max(values) <= highest
        mrc = known[one.figure, quantity_name(sensitivity.MRC, 0.0, size)]["ours"]
        assert table["MRC, strict"][column] == number(mrc)
    assert {knob.title for knob in knobs()} <= set(table)
