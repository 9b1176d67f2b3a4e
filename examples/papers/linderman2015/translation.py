"""DNA translated to amino acids.

>>> translate("ATGGCCTAA")
'MA*'
"""

_AMINO_ACIDS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
_BASES = "TCAG"
_CODE = {
    a + b + c: _AMINO_ACIDS[16 * i + 4 * j + k]
    for i, a in enumerate(_BASES)
    for j, b in enumerate(_BASES)
    for k, c in enumerate(_BASES)
}


def translate(dna: str) -> str:
    """Translate DNA to amino acids, one letter each, from the first base on, by the standard code.

    Stop codons are ``*``, codons with a base other than A, C, G and T are ``X``, and a last one or
    two bases are left out.
    """
    dna = dna.upper().replace("U", "T")
    return "".join(_CODE.get(dna[i : i + 3], "X") for i in range(0, len(dna) - 2, 3))
