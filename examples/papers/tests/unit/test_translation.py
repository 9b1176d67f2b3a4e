"""The genetic code."""

from examples.papers.linderman2015.translation import translate


def test_the_standard_code():
    table = {
        "TTT": "F", "TTA": "L", "CTG": "L", "ATA": "I", "ATG": "M", "GTC": "V", "TCG": "S",
        "AGC": "S", "CCT": "P", "ACA": "T", "GCG": "A", "TAT": "Y", "TAG": "*", "TGA": "*",
        "CAC": "H", "CAG": "Q", "AAT": "N", "AAA": "K", "GAT": "D", "GAG": "E", "TGC": "C",
        "TGG": "W", "CGA": "R", "AGG": "R", "GGT": "G",
    }  # fmt: skip
    assert translate("".join(table)) == "".join(table.values())
    bases = "ACGT"
    every = "".join(a + b + c for a in bases for b in bases for c in bases)
    amino_acids = translate(every)
    assert len(set(amino_acids)) == 21
    assert amino_acids.count("*") == 3
    assert translate("augnnnga") == "MX"
    assert translate("AT") == ""
