"""Models: frozen dataclasses of hyperparameters and one Markov sweep; none imports another."""
