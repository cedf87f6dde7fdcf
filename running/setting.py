"""The setting of a run, made again from its stored options, so that an old run can be judged again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios import Setting
from topo import Plan


def setting_of(options: Mapping[str, Any], plan: Plan) -> Setting:
    """`plan` is the run's own, from its folder. Raises KeyError when the options are not those of a run."""
    ports = plan.planes if options["single_plane"] else 1
    return Setting(
        plan.at_rate(int(options["port_rate_bps"]) // ports),
        options["transport"],
        int(options["seed"]),
        options["phases"],
        int(options["queue_pairs"]),
        bool(options["single_plane"]),
        float(options.get("pace", 1.0)),
    )
