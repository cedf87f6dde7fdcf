"""A process of `./lab run --processes N`: `python -m running.parallel FOLDER` makes its part of the run there."""

import sys
from pathlib import Path

from running.parallel import runs

if __name__ == "__main__":
    sys.exit(runs.part(Path(sys.argv[1])))
