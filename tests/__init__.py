"""Tests; a package so that `python -m tests.benchmarks.NAME` finds these before any other."""
