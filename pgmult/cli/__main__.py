"""``python -m pgmult.cli``."""

import sys

from pgmult.cli import main

sys.exit(main())
