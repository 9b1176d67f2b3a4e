"""Compiled kernels of regressions: see `pgmult.compiled`."""
