"""Models of sequences, one file each."""
