"""Embedded P4 switch: two executions of one program model, P4Runtime."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from switch.__main__ import register
    from switch.config import DeviceConfig, PortSpec, parse_config
    from switch.engine import (
        PRIORITIES,
        Engine,
        EngineControl,
        EngineError,
        MeterConfig,
        PortConfig,
        QueueConfig,
        Transmitted,
    )
    from switch.fabric import End, Fabric, NicPort, TimedFrame
    from switch.packet_log import NO_PORT, Fate, NodeKind, PacketRecord, in_order
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "NO_PORT", "PRIORITIES", "DeviceConfig", "End", "Engine", "EngineControl", "EngineError", "Fabric", "Fate",
    "MeterConfig", "NicPort", "NodeKind", "PacketRecord", "PortConfig", "PortSpec", "QueueConfig", "TimedFrame",
    "Transmitted", "in_order", "native", "p4rt", "parse_config", "reference", "register", "stf",
]  # fmt: skip
