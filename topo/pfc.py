"""Flow control of a plan (IEEE 802.1Qbb): which priority is lossless, when a port pauses its peer, its headroom.

All thresholds are bytes of Ethernet frames that came by one port and wait in the switch, in the lossless priority.
"""

from topo.graph import PortRef, link_at
from topo.node import Switch
from topo.plan import PRIORITY_LOSSLESS, Plan

__all__ = ["JITTER_SHARE", "jitter_ns", "port_settings"]

PFC_FRAME_BYTES = 64  # with FCS
JITTER_SHARE = 8
"""On real links, timers allow for processes that are late by this part of a base round trip; `running/calibration.py`
makes the lab so slow that they are not later."""
CLASSES = 1 << PRIORITY_LOSSLESS  # as in a class-enable vector


def classes(plan: Plan) -> int:
    """The lossless priorities, bit n for priority n; 0 where there is no flow control."""
    return CLASSES if plan.pfc.enabled else 0


def jitter_ns(plan: Plan) -> int:
    """How late a process may be scheduled on a machine whose few cores run a whole fabric."""
    return plan.base_rtt_ns // JITTER_SHARE


def headroom_bytes(plan: Plan, ref: PortRef, late_ns: int = 0) -> int:
    """What may still come by a port after it has gone above xoff.

    Worked as in IEEE 802.1Q, annex O: the cable both ways, a longest frame that the port was sending when it wanted to
    say so, the PFC frame, and a longest frame that the peer had begun; and the frame that crossed xoff. `late_ns` is
    how late both ends may act on top of that (processes; hardware's response time is in `links.nic_latency_ns`).
    """
    link = link_at(plan, ref)
    frame_bytes = plan.frame_bytes_max + plan.links.wire_overhead_bytes
    pfc_bytes = PFC_FRAME_BYTES + plan.links.wire_overhead_bytes
    on_the_way = -(-link.rate_bps * (2 * link.delay_ns + late_ns) // 8_000_000_000)
    return on_the_way + 3 * frame_bytes + pfc_bytes


def port_settings(plan: Plan, ref: PortRef, late_ns: int = 0) -> dict[str, int]:
    """The `pfc_` fields of a switch port's configuration (docs/contracts.md); none where there is no flow control.

    Ports towards other switches and towards hosts have them alike.
    """
    if not plan.pfc.enabled or not isinstance(ref.node, Switch):
        return {}
    pfc = plan.pfc
    return {
        "pfc_classes": CLASSES,
        "pfc_xoff_bytes": plan.threshold_bytes(pfc.xoff),
        "pfc_xon_bytes": plan.threshold_bytes(pfc.xon),
        "pfc_headroom_bytes": headroom_bytes(plan, ref, late_ns),
        "pfc_quanta": pfc.quanta,
        "pfc_watchdog_ns": round(pfc.watchdog_rtts * plan.base_rtt_ns),
        "pfc_mac": int(ref.mac.replace(":", ""), 16),
    }
