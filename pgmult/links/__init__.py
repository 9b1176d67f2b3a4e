"""Links between real vectors and probabilities of categories; each emits Gaussian potentials."""

from pgmult.links.logistic_normal import LogisticNormal
from pgmult.links.stick_breaking import StickBreaking

__all__ = ["LogisticNormal", "StickBreaking"]
