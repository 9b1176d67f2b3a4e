"""Priors that only topic models use."""
