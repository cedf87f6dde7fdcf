"""Names on a command line that are checked before anything is installed."""

import argparse
import sys
from importlib.util import find_spec
from types import SimpleNamespace

SEVERAL = ("sweep", "contest")
"""Commands whose options take several names with commas between them."""


def check_names(namespace: argparse.Namespace) -> None:
    """ValueError for a scenario, transport or plan that is none, and for what the command's own `check` refuses.

    The standard library is enough, and no code of a user's is loaded, which may need more.
    """
    from running.transport_choice import transport
    from scenarios import library
    from topo import load_plan

    several = namespace.command in SEVERAL
    for option, check in (("scenario", library.check), ("transport", transport), ("plan", load_plan)):
        text = getattr(namespace, option, None) or ""
        for name in text.split(",") if several or option == "transport" else [text]:
            if text:
                check(name)
    for name in getattr(namespace, "scenarios", []):
        library.check(name)
    if "mypy_extensions" not in sys.modules and find_spec("mypy_extensions") is None:  # only the compiler reads it
        kept = SimpleNamespace(mypyc_attr=lambda **_: lambda decorated: decorated)
        sys.modules["mypy_extensions"] = kept  # type: ignore[assignment]
    if hasattr(namespace, "check"):
        namespace.check(namespace)
