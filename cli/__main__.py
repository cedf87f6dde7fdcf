"""`python -m cli` is `mrclab`."""

import sys

from cli import huge_pages

if huge_pages.named(sys.argv[1:]):
    huge_pages.start_with_them()

from cli.main import main  # a command line that starts again has imported nothing for it

sys.exit(main())
