"""Whatever JSON a control client sends: the host answers each request once, in words, and lives on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from endpoint import profile as profiles
from endpoint import transports
from endpoint.host import Host
from endpoint.workloads import KINDS
from tests.endpoint.nic_profiles import profile as profile_data
from tests.endpoint.workload_fake import FakeNet

NOW_NS = 1_000_000_000
HOSTS = 3
OPERATIONS = [*FakeNet(seed=1, hosts=2).hosts["h0"]._operations, "workload.wait"]
OPTIONS = sorted({name for kind in KINDS.values() for name in kind.OPTIONS.__dataclass_fields__})

numbers = st.sampled_from([-(2**70), -1, 0, 1, 2, 3, 4, 16, 100, 4096, 1_000_000, 2**32, 2**64, 10**30])
scalars = st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=5)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
names = st.sampled_from(["a", "b", ""]) | anything
host_names = st.sampled_from([f"h{index}" for index in range(HOSTS)])
# Small: a test of words, not of memory.
option_values = st.integers(1, 64) | st.booleans() | st.floats() | st.lists(anything, max_size=2) | st.just(-1)
options = st.dictionaries(st.sampled_from(OPTIONS), option_values, max_size=3) | st.just({}) | anything
qp_infos = st.fixed_dictionaries(
    {"host": host_names | anything, "qpn": numbers | anything, "psn": numbers | anything},
    optional={"mpr": numbers | anything, "max_write_imm": numbers | anything, "trim_nack": anything, "x": anything},
)
offers = st.fixed_dictionaries(
    {
        "qps": st.lists(qp_infos, max_size=3) | anything,
        "va": numbers | anything,
        "rkey": numbers | anything,
        "length": numbers | anything,
    }
)
good_info = st.fixed_dictionaries(
    {"host": host_names, "qpn": st.integers(0, 2**24 - 1), "psn": st.integers(0, 2**24 - 1)},
    optional={"trim_nack": st.booleans()},
).flatmap(lambda info: st.builds(lambda mpr: {**info, "mpr": mpr, "max_write_imm": 8}, st.sampled_from([0, 8, 99])))
near_offers = st.fixed_dictionaries(
    {"qps": st.lists(good_info, min_size=1, max_size=2), "va": numbers, "rkey": numbers, "length": numbers}
)
arguments = {
    "id": st.integers() | anything,
    "name": names,
    "kind": st.sampled_from(sorted(KINDS)) | anything,
    "ranks": st.permutations(["h0", "h1"]) | st.lists(host_names | anything, max_size=4) | anything,
    "options": options,
    "offers": st.dictionaries(host_names, near_offers | offers | anything, max_size=3) | anything,
    "at_ns": numbers | anything,
    "interval_ns": numbers | anything,
    "window": numbers | anything,
    "deny": st.booleans() | anything,
    "paths": st.booleans() | anything,
    "denied": st.lists(st.fixed_dictionaries({"host": host_names | anything, "ev": numbers | anything})) | anything,
}
requests = st.fixed_dictionaries({"op": st.sampled_from(OPERATIONS)}, optional=arguments) | st.fixed_dictionaries(
    {"op": anything}, optional=arguments
)


def make_host(transport: str, lines: list[str]) -> Host:
    data = profile_data(0, HOSTS, self_probes=[{"target": "p0l0", "port": 1, "da": "fcbb:bbbb:1::"}])
    profile = profiles.parse(data)
    return Host(
        profile,
        transports.make(transport, profile, 1, {}, NOW_NS),
        lambda t_ns, kind, fields: lines.append(json.dumps(fields)),
        clock=lambda: NOW_NS,
        now_ns=NOW_NS,
    )


def converse(host: Host, conversation: list[dict[str, Any]]) -> None:
    """Each request is answered at once, but for a wait, which is answered at the latest when the host ends."""
    answers: list[list[dict[str, Any]]] = []
    now_ns = NOW_NS
    for request in conversation:
        answers.append([])
        host.control(request, now_ns, answers[-1].append)
        assert len(answers[-1]) == 1 or (request["op"] == "workload.wait" and not answers[-1])
        now_ns += 1_000_000
        host.handle_timer(now_ns)
        host.packets_to_send(now_ns, 64)
    host.close(now_ns)
    for request, found in zip(conversation, answers, strict=True):
        (answer,) = found
        assert repr(answer["id"]) == repr(request.get("id"))
        assert json.dumps(answer)
        assert answer["ok"] is True or (answer["ok"] is False and answer["error"])


PREPARE = {"op": "workload.prepare", "name": "a", "kind": "write_bw", "ranks": ["h0", "h1"], "options": {}}
INFO = {"host": "h1", "qpn": 1, "psn": 1, "mpr": 8, "max_write_imm": 8}


def connect(qp: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    offer = {"qps": [{**INFO, **(qp or {})}], "va": 0, "rkey": 1, "length": 1 << 30, **changes}
    return {"op": "workload.connect", "name": "a", "offers": {"h1": offer}}


START = {"op": "workload.start", "name": "a"}


@pytest.mark.parametrize("transport", transports.NAMES)
@given(
    conversation=st.builds(
        lambda begin, rest: [*begin, *rest],
        st.sampled_from([[], [PREPARE], [PREPARE, connect()], [PREPARE, connect(), START]]),
        st.lists(requests, min_size=1, max_size=5),
    )
)
@settings(max_examples=100, deadline=None)
@example(conversation=[{**PREPARE, "ranks": [["h0"], "h1"]}])
@example(conversation=[{**PREPARE, "kind": "all_reduce", "options": {"seed": -1}}])
@example(conversation=[{"op": "prober.start", "window": 10**30}])
@example(conversation=[PREPARE, connect({"host": "h9"})])
@example(conversation=[PREPARE, connect({"qpn": "x"})])
@example(conversation=[PREPARE, connect({"mpr": 99}), START])
@example(conversation=[PREPARE, connect(va=-1), START])
@example(conversation=[PREPARE, connect(va=2**64), START])
@example(conversation=[PREPARE, {"op": "workload.wait", "name": "a"}, {"op": "workload.remove", "name": "a"}])
@example(conversation=[{"op": "denylist.set", "denied": [{"host": ["h1"], "ev": 1}]}])
def test_any_json_is_answered_once(transport: str, conversation: list[dict[str, Any]]) -> None:
    converse(make_host(transport, []), conversation)
