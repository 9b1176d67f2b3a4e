"""What all subpackages share: protocols, potentials, checks of arguments, the machine."""
