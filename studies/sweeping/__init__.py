"""Sweeping: one experiment on many seeds, and statements about it with a confidence."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from studies.sweeping.paired import PairedDifference, difference
    from studies.sweeping.progress import SweepProgress
    from studies.sweeping.proportion import Share, share
    from studies.sweeping.row import Row
    from studies.sweeping.statement import VariantStatement, document, statements
    from studies.sweeping.subject import Subject
    from studies.sweeping.sweep import RowStore, Sweep
    from studies.sweeping.task import Task, VersionError
    from studies.sweeping.until import Until, parse_share
    from studies.sweeping.variant import Variant, variants
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = [
    "PairedDifference", "Row", "RowStore", "Share", "Subject", "Sweep", "SweepProgress", "Task", "Until", "Variant",
    "VariantStatement", "VersionError", "difference", "document", "parse_share", "perform", "report", "share",
    "statements", "subject", "text", "variants",
]  # fmt: skip
