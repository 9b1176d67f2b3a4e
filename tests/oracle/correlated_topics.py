"""Documents of the logistic normal topic model for the generic coordinate ascent: slow and plain.

`DocumentEta` is f of eta given expected topic counts, row by row; `CorrelatedDocuments` alternates
it with q(z), topics, mu and Sigma fixed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax


@dataclass(frozen=True)
class DocumentEta:
    """f(eta) = counts' eta - N log sum exp eta - (eta - mu)' precision (eta - mu) / 2."""

    topic_counts: np.ndarray
    totals: np.ndarray
    mu: np.ndarray
    precision: np.ndarray

    def value(self, eta, rows):
        gap = eta - self.mu
        return (
            (self.topic_counts[rows] * eta).sum(axis=1)
            - self.totals[rows] * logsumexp(eta, axis=1)
            - 0.5 * np.einsum("ri,ij,rj->r", gap, self.precision, gap)
        )

    def gradient(self, eta, rows):
        expected = self.totals[rows, None] * softmax(eta, axis=1)
        return self.topic_counts[rows] - expected - (eta - self.mu) @ self.precision

    def hessian(self, eta, rows):
        pi = softmax(eta, axis=1)
        spread = pi[:, :, None] * np.eye(len(self.mu)) - pi[:, :, None] * pi[:, None, :]
        return -self.totals[rows, None, None] * spread - self.precision


@dataclass(frozen=True)
class CorrelatedDocuments:
    """q(eta) and q(z) of documents, ``(num_documents, num_words)`` counts; the rest is E counts."""

    counts: np.ndarray
    topics: np.ndarray
    mu: np.ndarray
    Sigma: np.ndarray

    def start(self):
        mean = np.tile(self.mu, (len(self.counts), 1))
        return {"eta": mean}, self._allocate(mean)[0]

    def _allocate(self, mean):
        joint = np.exp(mean)[:, :, None] * self.topics
        q = joint / joint.sum(axis=1, keepdims=True)
        return np.einsum("dw,dkw->dk", self.counts, q), (
            self.counts * np.log(joint.sum(axis=1))
        ).sum(axis=1)

    def objectives(self, node, gaussians, rest):
        totals = self.counts.sum(axis=1).astype(float)
        return DocumentEta(rest, totals, self.mu, np.linalg.inv(self.Sigma))

    def update_rest(self, gaussians, rest):
        return self._allocate(gaussians["eta"].mean)[0]

    def levels(self, q):
        """Log probability of each document's words as expanded at the mean of q."""
        rows = np.arange(len(self.counts))
        f = self.objectives("eta", {}, np.zeros_like(q.mean))
        trace = np.einsum("rij,rji->r", f.hessian(q.mean, rows), q.cov)
        n = len(self.mu)
        constant = -0.5 * (np.linalg.slogdet(self.Sigma)[1] + n * np.log(2.0 * np.pi))
        expanded = f.value(q.mean, rows) + 0.5 * trace
        return self._allocate(q.mean)[1] + expanded + constant + q.entropy()
