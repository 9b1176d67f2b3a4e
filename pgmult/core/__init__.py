"""What every room stands on: protocols, potentials, checks of arguments, the machine."""
