"""How well topics that were held out are predicted."""
