"""Markov steps that models of topics share."""
