"""Compiled kernels of topics: see `pgmult.compiled`."""
