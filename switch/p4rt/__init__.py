"""A P4Runtime server for many devices in one process, over the engines of `switch.engine`."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from switch.p4rt.batch import BatchError
    from switch.p4rt.bindings import p4runtime_pb2
    from switch.p4rt.bytestring import SHOWN_BYTES_MAX
    from switch.p4rt.errors import Code, P4RuntimeError, choices, invalid
    from switch.p4rt.meters import unconfigured_cell
    from switch.p4rt.p4info import ActionInfo, P4Info, ProfileInfo, TableInfo, parse_p4info_text
    from switch.p4rt.pipeline import ForwardingPipeline
    from switch.p4rt.profiles import encode_group
    from switch.p4rt.store import EntityStore, StoredEntry
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "SHOWN_BYTES_MAX", "ActionInfo", "BatchError", "Code", "EntityStore", "ForwardingPipeline", "P4Info",
    "P4RuntimeError", "ProfileInfo", "StoredEntry", "TableInfo", "batch", "choices", "codec", "encode_group", "invalid",
    "p4runtime_pb2", "parse_p4info_text", "unconfigured_cell", "wire",
]  # fmt: skip
