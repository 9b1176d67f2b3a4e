"""Markov steps that models call inside their own ``step``."""
