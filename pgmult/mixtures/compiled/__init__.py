"""Compiled kernels of mixtures: see `pgmult.compiled`."""
