"""Do intervals hold, by the defaults and from the file?

A `Design` simulates a table with known truths, writes it, runs the command that `pgmult FILE`
prints, and reads what the actions answer. The table of coverage stands in docs/trust.md.

    python -m tests.benchmarks.defaults regression              # a hundred tables of each design
    python -m tests.benchmarks.defaults topics --tables 30 --only softmax
"""
