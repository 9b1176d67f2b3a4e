"""The law of a Gaussian field at its inputs and at new ones, by the assembled Gaussian."""

import numpy as np


def dense_law(covariance, inputs, new, J, h, mean=0.0, new_mean=0.0):
    """Mean, covariance (inputs first, then new) and log normaliser of one column.

    J and h are (num_inputs,). The form is that of noisy observations h / J, the accurate one.
    """
    wide = np.concatenate([inputs, new])
    cov = covariance.cov(wide)
    centre = np.concatenate(
        [np.broadcast_to(mean, len(inputs)), np.broadcast_to(new_mean, len(new))]
    )
    seen = np.flatnonzero(J > 0.0)
    w = np.sqrt(J[seen])
    root = np.linalg.cholesky(np.eye(len(seen)) + w[:, None] * cov[np.ix_(seen, seen)] * w)
    data = h[seen] / w - w * centre[seen]
    u = np.linalg.solve(root, data)
    gain = np.linalg.solve(root, w[:, None] * cov[seen])
    log_z = 0.5 * np.sum((h[seen] / w) ** 2) - 0.5 * u @ u - np.sum(np.log(np.diagonal(root)))
    return centre + gain.T @ u, cov - gain.T @ gain, log_z


def assert_drawn_from(draws, mean, cov, tolerance=5.0):
    """Whether the rows of `draws` have a normal law's moments, and no others beyond noise."""
    values, vectors = np.linalg.eigh(cov)
    keep = values > 1e-9 * values[-1]
    deviations = draws - mean
    beyond = deviations @ vectors[:, ~keep]
    assert np.abs(beyond).max(initial=0.0) < 1e-3 * np.sqrt(values[-1])
    whitened = deviations @ vectors[:, keep] / np.sqrt(values[keep])
    count = len(draws)
    assert np.abs(whitened.mean(axis=0)).max() < tolerance / np.sqrt(count)
    second = whitened.T @ whitened / count
    error = np.sqrt((1.0 + np.eye(len(second))) / count)
    assert (np.abs(second - np.eye(len(second))) < tolerance * error).all()
