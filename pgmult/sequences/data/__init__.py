"""What sequences are made of: validated arrays with their labels."""
