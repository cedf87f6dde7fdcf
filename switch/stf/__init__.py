"""Packet tests: small `.stf` files run against any engine. The words are described in `switch/stf/README.md`."""

from switch.stf.runner import Failure, run
from switch.stf.statements import StfError, parse

__all__ = ["Failure", "StfError", "parse", "run"]
