"""Data of models of sequences: validated arrays with their labels."""
