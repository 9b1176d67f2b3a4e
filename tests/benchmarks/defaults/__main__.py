"""``python -m tests.benchmarks.defaults COMMAND [--tables N] [--first SEED] [--only TEXT]``."""

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.defaults.frame import coverage

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=("topics", "fields", "sequences", "regression", "choice"))
parser.add_argument("--tables", type=int, default=100)
parser.add_argument("--first", type=int, default=0)
parser.add_argument("--only", default="", help="designs whose names contain this")
options = parser.parse_args()
print("| truth | number | numbers | 50 % | 80 % | 90 % | mean z | sd of z | CPU |")
print("|---|---|---|---|---|---|---|---|---|")
for design in importlib.import_module(f"tests.benchmarks.defaults.{options.command}").DESIGNS:
    if options.only in design.name:
        coverage(design, options.tables, options.first)
