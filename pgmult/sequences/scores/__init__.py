"""How well sequences that were held out are predicted."""
