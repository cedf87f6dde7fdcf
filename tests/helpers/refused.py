"""A command that must be refused: the fixture that calls it and gives its complaint."""

from collections.abc import Callable

import pytest

Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Calls `./lab` with words, which must end with status 2, and returns what was written to standard error."""

    def told(*words: object) -> str:
        from cli.main import main

        capsys.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as ended:  # argparse
            status = int(ended.code or 0)
        said = capsys.readouterr()
        assert status == 2, said
        return said.err

    return told
