"""The goal of a run that is to end once its report is settled, and how soon it may be reached.

Apart from `pgmult.sampling.goals`, so that a command can say it before numbers are needed.
"""

SETTLED = "settled"
LEAST_DRAWS = 200
"""Draws of a chain below which a run is not asked whether it is settled."""
