"""A judged run for readers: text, page, plots, CSV, and two runs compared."""

from typing import TYPE_CHECKING

from common.door import lazy

if TYPE_CHECKING:
    from judging.reports.figures import write_csv
else:
    __getattr__ = lazy(__name__, __file__)

__all__ = ["comparison", "page", "plots", "report", "write_csv"]
