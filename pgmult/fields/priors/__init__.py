"""Priors that only fields have."""
