"""`./lab launch`: which hosts, in which order, with which environment; and on a real lab, as root."""

import pytest

from cli.host_names import parse_hosts
from topo.planfile import load_plan

PLAN = load_plan("lab")


@pytest.mark.parametrize(
    ("text", "names"),
    [("h0..h3", "h0 h1 h2 h3"), ("h2,h0", "h2 h0"), ("h5..h5", "h5"), ("h0..h1,h7", "h0 h1 h7"), ("h3", "h3")],
)
def test_hosts_in_the_order_of_their_ranks(text: str, names: str) -> None:
    assert [host.name for host in parse_hosts(PLAN, text)] == names.split()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be hosts such as h0..h7"),
        ("h0..", "must be hosts such as h0..h7"),
        ("h3..h1", "a range must go upwards"),
        ("h0..h2,h1", "must name each host once .got h1"),
        ("h0..h99", "h99"),
        ("p0l0", "must be hosts such as"),
        ("h0;h1", "must be hosts such as"),
    ],
)
def test_a_wrong_choice_is_told_by_its_part(text: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        parse_hosts(PLAN, text)
