"""Starting a process that a test is to interrupt."""

import signal


def heeding_interrupts() -> None:
    """For a child (`preexec_fn`): what a shell runs in the background ignores Ctrl-C, and passes that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
