"""``python -m pgmult``."""

import sys

from pgmult.cli.commands import main

sys.exit(main())
