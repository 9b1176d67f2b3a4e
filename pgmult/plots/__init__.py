"""Figures, on matplotlib (``pip install "pgmult[plots]"``).

Every function draws on the axes it is given, or on a figure of its own, and returns the axes; none
touches pyplot or any global setting.
"""

from pgmult.plots.fields import probability_series, state_tiles
from pgmult.plots.sequences import (
    axis_words,
    forecast_fan,
    latent_trajectories,
    symbol_probs,
)
from pgmult.plots.topics import (
    held_out_curve,
    log_likelihood_trace,
    score_by_num_topics,
    top_word_bars,
    topic_correlation_graph,
    topic_correlation_heatmap,
)

__all__ = [
    "axis_words",
    "forecast_fan",
    "held_out_curve",
    "latent_trajectories",
    "log_likelihood_trace",
    "probability_series",
    "score_by_num_topics",
    "state_tiles",
    "symbol_probs",
    "top_word_bars",
    "topic_correlation_graph",
    "topic_correlation_heatmap",
]
