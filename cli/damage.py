"""Readers of run folders that may be damaged: errors that a bad journal line causes name the run."""

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.outcome import DEBUG

RAISED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@contextmanager
def told_of(*runs: Path) -> Iterator[None]:
    """Turn errors that a damaged journal causes into a ValueError that names these runs, unless they name one."""
    try:
        yield
    except RAISED as error:
        if any(str(run) in str(error) for run in runs):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raised = f"{type(error).__name__}: {error} at {os.path.basename(last.filename)}:{last.lineno}"
        raise ValueError(
            f"{' or '.join(map(str, runs))}: a journal line must hold what docs/contracts.md says of its kind"
            f" ({raised}; {DEBUG}=1 shows more)"
        ) from error
