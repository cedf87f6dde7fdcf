"""MRC for any program in a host of a lab: verbs over the NIC of the network namespace that the program runs in.

    with mrclab.Context() as context:
        mr, cq = context.reg_mr(1 << 20), context.create_cq(64)
        qp = context.create_qp(cq)
        ...                                       # give qp.info() and mr.info() to the peer, take its own
        qp.connect(peer["qp"])
        qp.post_send(mrclab.SendWR(1, mr, 0, mr.length, peer["mr"]["addr"], peer["mr"]["rkey"], imm_data=7))
        completion, = cq.wait()

docs/uverbs.md is the manual. Names are those of pyverbs where there is something to name.
"""

from mrclab.connection import get_device_list
from mrclab.context import (
    CompChannel,
    Context,
    DeviceAttr,
    EpResponse,
    EvEvent,
    EvEventCQ,
    EvProfile,
    EvState,
    PortAttr,
    QPHint,
)
from mrclab.cq import CQ, WC, WCOpcode, WCStatus
from mrclab.errors import DeviceGoneError, MRCError, QueueFullError, RefusedError
from mrclab.memory import MR
from mrclab.qp import QP, QPAttr, QPAttrMask, QPState, SendWR

__all__ = [
    "CQ", "MR", "QP", "WC", "CompChannel", "Context", "DeviceAttr", "DeviceGoneError", "EpResponse", "EvEvent",
    "EvEventCQ", "EvProfile", "EvState", "MRCError", "PortAttr", "QPAttr", "QPAttrMask", "QPHint", "QPState",
    "QueueFullError", "RefusedError", "SendWR", "WCOpcode", "WCStatus", "get_device_list",
]  # fmt: skip
