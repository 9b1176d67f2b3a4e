"""Models of topics, one file each."""
