"""No congestion control: 1.5 bandwidth-delay products in flight, always, or a QP's
share of them by its hint. The control group of experiments."""

from typing import Any

from mypy_extensions import mypyc_attr

from endpoint.mrc.congestion.cc_profile import PathTraits
from endpoint.mrc.congestion.congestion import Congestion
from endpoint.mrc.parameter import Values


@mypyc_attr(allow_interpreted_subclasses=True)
class FixedWindow(Congestion):
    def __init__(self, path: PathTraits, values: Values, shared: dict[str, Any]) -> None:
        super().__init__(path, values, shared)
        self.window_bytes = max(path.mtu_bytes, path.network_bdp_bytes * 3 // 2 // path.sharers)
