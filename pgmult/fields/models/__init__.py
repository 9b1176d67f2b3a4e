"""Models of fields, one file each."""
