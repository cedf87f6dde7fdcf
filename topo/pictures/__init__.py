"""Pictures of a fabric: what is drawn, and the formats that it is drawn in."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from topo.pictures.fabric import picture
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["graph", "picture", "positions"]
