"""Figures: each kind is data that can be drawn as SVG on a page, or with matplotlib."""
