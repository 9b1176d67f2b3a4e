"""Priors that only topics have."""
