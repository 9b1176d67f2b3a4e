"""Compiled kernels of latent Gaussians: see `pgmult.compiled`."""
