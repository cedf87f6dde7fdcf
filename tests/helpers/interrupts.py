"""Starting a process that a test is to interrupt."""

import signal


def heeding_interrupts() -> None:
    """For a child (`preexec_fn`): what a shell runs in the background ignores signals, and passes that on."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
