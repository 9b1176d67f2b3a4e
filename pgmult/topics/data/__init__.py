"""What topics are made of: validated arrays with their labels."""
