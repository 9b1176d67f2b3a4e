"""Compiled kernels of fields: see `pgmult.compiled`."""
