"""`python -m cli` is `mrclab`."""

import sys

from cli.main import main

sys.exit(main())
