"""Biological sequences in FASTA files."""

from pathlib import Path

from pgmult.core.arguments import as_path
from pgmult.datasets.files import each_line


def read_fasta(path: str | Path) -> dict[str, str]:
    """The sequences of a FASTA file by name, unchanged and in the file's order.

    Parameters
    ----------
    path : str or Path
        Compressed if it ends in ``.gz``.

    Returns
    -------
    dict
        The name is what follows ``>`` up to the first blank.

    Raises
    ------
    ValueError
        If a line comes before the first name, a name is empty, without a sequence or repeated, or
        the file is damaged or not plain ASCII.
    """
    path = as_path(path)
    lines: dict[str, list[str]] = {}
    name = None
    for number, line in enumerate(each_line(path, default="ascii"), start=1):
        text = line.strip()
        if text.startswith(">"):
            name = (text[1:].split() or [""])[0]
            if name == "" or name in lines:
                what = f"the name {name!r} stands there twice" if name else "a name is empty"
                raise ValueError(f"{path}, line {number}: {what}")
            lines[name] = []
        elif text and name is None:
            expected = "a line starting with '>' must come first"
            raise ValueError(f"{path}, line {number}: {expected}, got {text[:20]!r}")
        elif text and name is not None:
            lines[name].append(text)
    empty = [name for name, parts in lines.items() if not parts]
    if empty or not lines:
        raise ValueError(f"{path}: " + (f"{empty[0]!r} has no sequence" if empty else "is empty"))
    return {name: "".join(parts) for name, parts in lines.items()}
