"""Fits of topics without sampling."""
