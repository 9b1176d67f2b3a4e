"""Compiled kernels of sequences: see `pgmult.compiled`."""
