"""Moves of the chains of fields, one file each."""
