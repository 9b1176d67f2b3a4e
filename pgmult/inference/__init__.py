"""Inference: algorithms that take models as arguments."""

from pgmult.inference.gibbs import Sweep, resume, sample

__all__ = ["Sweep", "resume", "sample"]
