"""Numbers and states that C writes down a second time are those of Python, which owns them."""

import re
from pathlib import Path

import pytest

import mrclab
from common import uverbs
from common.states import QPState
from endpoint import transport
from endpoint.mrc import cc_profiles
from endpoint.mrc.paths import ev_profile
from endpoint.nic import attributes, config
from endpoint.uverbs import channel, control
from judging.measures import counters
from switch import engine

ROOT = Path(__file__).parents[2]
RUNTIME, LIBRARY = "switch/native/runtime", "libmrc/source"
NUMBER = r"0x[0-9A-Fa-f]+|\d+"
OWNED = {
    (f"{RUNTIME}/program/packet.h", "FRAME_MAX"): engine.FRAME_BYTES_MAX,
    (f"{RUNTIME}/program/packet.h", "PASSES_MAX"): engine.PASSES_MAX,
    (f"{RUNTIME}/program/packet.h", "COPIES_MAX"): engine.COPIES_MAX,
    (f"{RUNTIME}/device/device.h", "WAITING_MAX"): engine.WAITING_PACKETS_MAX,
    (f"{RUNTIME}/device/device.h", "DROP_PORT"): engine.DROP_PORT,
    (f"{RUNTIME}/device/device.h", "PRIORITIES"): engine.PRIORITIES,
    (f"{LIBRARY}/nic.h", "MESSAGE_MAX"): uverbs.MESSAGE_BYTES_MAX,
    (f"{LIBRARY}/nic.h", "ROWS_MAX"): uverbs.ROWS_MAX,
    (f"{LIBRARY}/nic.h", "KIND_POST"): uverbs.POST,
    (f"{LIBRARY}/nic.h", "KIND_COMPLETIONS"): uverbs.COMPLETIONS,
    (f"{LIBRARY}/nic.h", "KIND_WAIT"): uverbs.WAIT,
    (f"{LIBRARY}/nic.h", "KIND_TIME"): uverbs.TIME,
    (f"{LIBRARY}/nic.h", "KIND_ARM"): uverbs.ARM,
    (f"{LIBRARY}/nic.h", "KIND_INLINE"): uverbs.INLINE,
    (f"{LIBRARY}/nic.h", "INLINE_MAX"): uverbs.INLINE_BYTES_MAX,
    (f"{LIBRARY}/nic.h", "FLAG_UNSIGNALED"): uverbs.UNSIGNALED,
    (f"{LIBRARY}/nic.h", "FLAG_SOLICITED"): uverbs.SOLICITED,
    (f"{LIBRARY}/device.c", "EVENT_SHIFT"): channel.EVENT_SHIFT,
    (f"{LIBRARY}/nic.h", "FLAG_WRONG"): uverbs.WRONG,
    (f"{LIBRARY}/qp.c", "TIMEOUT_MAX"): config.TIMEOUT_MAX,
    (f"{LIBRARY}/qp.c", "EXP_WITHOUT_END"): config.RETRIES_WITHOUT_END,
    (f"{LIBRARY}/mrc.c", "MPR_MAX"): attributes.MPR_MAX,
    (f"{LIBRARY}/mrc_ctl.c", "PROFILES_MAX"): ev_profile.PROFILES_MAX,
    (f"{LIBRARY}/mrc_ctl.c", "EVS_MAX"): ev_profile.COUNT_MAX,
    (f"{LIBRARY}/mrc_ctl.c", "EVENTS_MAX"): control.EVENTS_MAX,
    (f"{LIBRARY}/mrc_ctl.c", "PROBES_MAX"): control.PROBES_MAX,
}
LISTED = {
    (f"{LIBRARY}/nic.h", "OP_"): (uverbs.WRITE, uverbs.WRITE_WITH_IMM, uverbs.RECV),
    (f"{LIBRARY}/nic.h", "DONE_"): (
        uverbs.WC_WRITE, uverbs.WC_WRITE_WITH_IMM, uverbs.WC_RECV_WITH_IMM, uverbs.WC_SILENT,
    ),
}  # fmt: skip
"""Enums without numbers: C counts from 0."""


def numbers(file: str, name: str) -> list[int]:
    """The value of a name in the file's enums: an integer, or one that is shifted."""
    text = (ROOT / file).read_text()
    found = re.findall(rf"\b{name} = ({NUMBER})(?: << (\d+))?[,; ]", text)
    return [int(value, 0) << int(shift or 0) for value, shift in found]


@pytest.mark.parametrize(("file", "name"), OWNED)
def test_c_and_python_have_the_same_limit(file: str, name: str) -> None:
    assert numbers(file, name) == [OWNED[file, name]]


@pytest.mark.parametrize(("file", "prefix"), LISTED)
def test_c_counts_the_opcodes_of_uverbs_in_the_order_of_python(file: str, prefix: str) -> None:
    (listed,) = re.findall(rf"enum {{ ({prefix}[A-Z_, ]+) }};", (ROOT / file).read_text())
    assert tuple(range(len(listed.split(", ")))) == LISTED[file, prefix]


def test_both_kinds_of_profile_have_one_limit_in_c() -> None:
    assert cc_profiles.PROFILES_MAX == ev_profile.PROFILES_MAX


def test_each_counter_of_drops_is_known_to_judging() -> None:
    """A packet that a new counter counts would else be taken for one that the P4 program dropped."""
    switch = {name for name in engine.PortCounters._fields if name.startswith("drop_")}
    judged = {name for name in counters.AFTER_RECEIVING if name.startswith("drop_")}
    assert judged.union(counters.COUNTED_ELSEWHERE) == switch | {"drop_trimmed_share"}  # of virtual time's NIC ports
    assert judged.isdisjoint(counters.COUNTED_ELSEWHERE)


def test_all_parts_in_python_and_the_library_in_c_have_the_same_states_in_the_same_order() -> None:
    assert mrclab.QPState is transport.QPState is QPState
    assert uverbs.STATES == ("reset", "init", "rtr", "rts", "sqd", "error")  # docs/uverbs.md
    text = (Path(__file__).parents[2] / "libmrc/source/qp.c").read_text()
    assert tuple(re.findall(r"\[IBV_QPS_\w+\] = \"(\w+)\"", text)) == uverbs.STATES
