"""Models of regressions, one file each."""
