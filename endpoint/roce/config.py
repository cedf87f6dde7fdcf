"""Settings of the RoCE baseline; times and sizes that are None follow from the profile, as in the MRC core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from endpoint.nic.config import QUEUE_MAX, check, fill
from endpoint.roce.dcqcn_setting import dcqcn_setting


@dataclass(frozen=True, slots=True)
class Settings:
    jitter_ns: int | None = None
    """None: the profile's."""
    timeout: int | None = None
    """Local ACK timeout exponent: 1.024 µs * 2^timeout. None: the first that exceeds `timeout_rtts`."""
    timeout_rtts: int = 8
    """Base round trips and jitters; on a lossless fabric packets wait longer, and none is lost."""
    repair_ns: int = 0
    """How long this NIC takes to go back after silence: a device's own. 0: by `timeout`."""
    nak_repair_ns: int | None = None
    """The same after a NAK. None: as long as after silence; 0: at once."""
    selective_repeat: bool = False
    """Packets behind a gap are kept, and only lost ones are sent again (IRN). False: go-back-N."""
    retry_count: int = 7
    """Timeouts in a row without progress before the QP goes to ERROR."""
    window_bdps: float = 2.0
    """Packets in flight at most: as many full ones as so many bandwidth-delay products hold. RC has no window of its
    own, but a NIC keeps track of so many PSNs and no more, whatever is in them."""
    ack_every_bytes: int = 16384
    """Bytes to an acknowledgement; a QP that takes longer than a base round trip for them asks with every packet."""
    dcqcn: bool = True
    """False: always at line rate."""
    dcqcn_setting: str = "default"
    """Which parameters: `endpoint.roce.dcqcn_setting`."""
    max_send_wr: int = 4096
    max_recv_wr: int = 4096
    events_max: int = 65536
    control_frames_max: int = 4096


def make_settings(values: dict[str, Any]) -> Settings:
    """Settings from keyword arguments. Raises `ConfigError` for a name that does not exist or a value that cannot be.

    `jitter_ns` and `timeout` are checked with what follows from them (`endpoint.nic.config.derive`).
    """
    settings = fill(Settings(), values, "RoCE has")
    check("retry_count", settings.retry_count, 0, 7)
    check("repair_ns", settings.repair_ns, 0, 10**10)
    if settings.nak_repair_ns is not None:
        check("nak_repair_ns", settings.nak_repair_ns, 0, 10**10)
    check("timeout_rtts", settings.timeout_rtts, 1, 1 << 20)
    dcqcn_setting(settings.dcqcn_setting)
    check("window_bdps", settings.window_bdps, 0.0, 1024.0)
    check("ack_every_bytes", settings.ack_every_bytes, 1, 1 << 30)
    for name in ("max_send_wr", "max_recv_wr", "events_max", "control_frames_max"):
        check(name, getattr(settings, name), 1, QUEUE_MAX)
    return settings
