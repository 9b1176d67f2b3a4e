"""Fits of regressions without sampling."""
