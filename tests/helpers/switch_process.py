"""A `python -m switch serve` that a test has started."""

import signal
import subprocess

WAIT_S = 20


def ready_words(process: subprocess.Popen[str]) -> dict[str, str]:
    """The words of its ready line, such as `grpc` and `control`; a process that ends without one fails the test."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("ready "), process.stderr.read() if process.stderr else line
    pairs = (word.partition("=") for word in line.split()[1:])
    return {name: value for name, _, value in pairs}


def stop(process: subprocess.Popen[str]) -> None:
    """End it by SIGTERM; the test fails when it does not end well, and nothing is left then either."""
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(WAIT_S) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
