"""Static tables from the plan, and the P4Runtime client that installs and checks them."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from controller.client import Address, ClientError
    from controller.counting import Cells, ClassCounters, counted, drop_causes, read_counters
    from controller.direct import DirectControl, encoded
    from controller.entries import Entity, TableEntry
    from controller.items import encode
    from controller.pipelines import Pipelines, compiled_pipelines
    from controller.provisioning import ProvisionError, addresses, check, provision
    from controller.push import read_switch, reconverge, verify, write_entities
    from controller.variant import ProgramVariant
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "Address", "Cells", "ClassCounters", "ClientError", "DirectControl", "Entity", "Pipelines", "ProgramVariant",
    "ProvisionError", "TableEntry", "addresses", "check", "cli", "compiled_pipelines", "counted", "drop_causes",
    "encode", "encoded", "provision", "push", "read_counters", "read_switch", "reconverge", "tables", "verify",
    "words", "write_entities",
]  # fmt: skip
