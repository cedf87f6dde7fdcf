"""RoCE uses all of its queue pairs in every workload, and the cores that the hash of each packet names."""

import pytest

from tests.helpers.roce_spread import FORMS, KINDS, PLANS, spread

LINKS = {"permutation": 8, "all_reduce": 8, "all_to_all": 8 * 7}
"""Of eight hosts, those that write to another one."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PLANS)
def test_all_queue_pairs_carry_traffic_and_no_core_is_left_out(name: str, kind: str) -> None:
    found = spread(name, kind, "roce-16qp")
    assert len(found.pairs) == 16 * LINKS[kind]
    assert max(found.pairs.values()) <= 2 * min(found.pairs.values())
    assert found.cores == found.hashed
    # With one hash on all tiers two of the four cores of `pods` received nothing; a quarter is the mean.
    assert min(found.cores.values()) > 0.1 * found.cores.total()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_roce_takes_the_cores_that_the_hash_names(form: str) -> None:
    found = spread("pods", "all_reduce", form)
    assert found.cores == found.hashed
    assert found.cores.total() > 0
