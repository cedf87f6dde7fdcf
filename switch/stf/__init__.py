"""Packet tests: small `.stf` files run against any engine. The words are described in `switch/stf/README.md`."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from switch.stf.control import StfControl
    from switch.stf.programs import read_program
    from switch.stf.runner import Failure, run
    from switch.stf.statements import Add, StfError, parse
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["Add", "Failure", "StfControl", "StfError", "parse", "read_program", "run"]
