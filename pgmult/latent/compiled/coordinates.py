"""Coordinates of standard deviations, which are nearly logarithmic but for small ones."""

BEND = 0.1  # the standard deviation from which on its coordinate is logarithmic
LARGEST = 12.0  # coordinate: a standard deviation of 16,000
LEAST_LOG_SD = -11.0
