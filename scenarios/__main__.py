"""`python -m scenarios` is `mrclab`."""

import sys

from scenarios.cli import main

sys.exit(main())
