"""Markov steps that models of sequences share."""
