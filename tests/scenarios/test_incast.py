"""The incast of the scenario ends before the victim's second calm phase begins, whatever the transport."""

import pytest

from running.transport_choice import TRANSPORTS
from scenarios import library
from scenarios.scenario import Setting
from topo.planfile import load_plan


@pytest.mark.parametrize("name", TRANSPORTS)
def test_bytes_in_flight_at_the_end_of_the_incast_arrive_within_the_pause(name: str) -> None:
    scenario, choice = library.find("incast"), TRANSPORTS[name]
    lengths = {phase.name: phase.seconds for phase in scenario.phases}
    setting = Setting(choice.fabric(load_plan(scenario.plan)), name, 7, lengths, choice.queue_pairs)
    (incast,) = (one for one in scenario.workloads(setting) if one.name == "incast")
    assert incast.ranks is not None
    posted = incast.options["size"] * incast.options["depth"] * incast.options["qps"] * (len(incast.ranks) - 1)
    assert posted * 8 / setting.host_rate_bps < lengths["pause"]
