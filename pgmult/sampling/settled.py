"""The goal of a run that is to end once its report is settled.

Apart from `pgmult.sampling.goals`, so that a command can say it before numbers are needed.
"""

SETTLED = "settled"
