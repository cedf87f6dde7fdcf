"""The rate that a machine can keep follows from how busy it was at another."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.running import calibration
from topo.planfile import load_plan


@pytest.mark.parametrize(
    ("rate_bps", "idle", "loaded", "fits"),
    [
        (10_000_000, 0.05, 0.75, 10_000_000),
        (10_000_000, 0.05, 0.50, 15_000_000),
        (10_000_000, 0.0, 0.10, 15_000_000),  # never more than half again the plan's own
        (5_000_000, 0.15, 0.90, 4_000_000),
        (10_000_000, 0.3, 0.3, 15_000_000),  # traffic that costs nothing measurable
    ],
)
def test_the_rate_that_leaves_a_quarter_free(rate_bps: int, idle: float, loaded: float, fits: int) -> None:
    assert calibration.fitting(rate_bps, idle, loaded, 10_000_000) == fits


def test_what_a_busy_machine_measured_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = load_plan("tiny")
    monkeypatch.setattr(calibration, "busy", lambda plan: (0.8, 0.9))
    told: list[str] = []
    found = calibration.calibrated(plan, told.append)
    assert found["port_rate_bps"] == plan.links.host_rate_bps
    assert "80% busy with other things" in told[-1]
    assert not (tmp_path / "mrclab").exists()


def test_measurements_are_kept_by_what_they_hold_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = load_plan("tiny")
    monkeypatch.setattr(calibration, "measure", lambda plan, tell: {"port_rate_bps": 7, "busy_idle": 0.1})
    assert calibration.calibrated(plan, lambda line: None) == {
        "port_rate_bps": 7,
        "busy_idle": 0.1,
        "source": "measured now",
    }
    monkeypatch.setattr(calibration, "measure", lambda plan, tell: {"port_rate_bps": 8, "busy_idle": 0.1})
    assert calibration.calibrated(plan, lambda line: None)["source"] == "cache"
    assert calibration.calibrated(plan, lambda line: None, again=True)["port_rate_bps"] == 8
    assert calibration.calibrated(load_plan("lab"), lambda line: None)["source"] == "measured now"
    (tmp_path / "mrclab" / "calibration.json").write_text("torn {")
    assert calibration.calibrated(plan, lambda line: None)["source"] == "measured now"
