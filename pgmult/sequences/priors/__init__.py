"""Priors that only sequences have."""
