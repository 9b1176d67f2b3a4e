"""Compiled loops over people."""
