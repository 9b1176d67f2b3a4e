"""``python -m pgmult``."""

import sys

from pgmult.cli import main

sys.exit(main())
