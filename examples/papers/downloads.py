"""Files from the network, kept in the user's cache folder."""

from pathlib import Path


def download(url: str, name: str) -> Path:
    """The file at `url`, from the user's cache folder if it is there."""
    try:
        import pooch
    except ImportError:
        raise ImportError(
            f"downloading {url} needs pooch: pip install 'pgmult[data]'"
            " (or set PGMULT_DATA to a folder that holds the data)"
        ) from None
    # The content is what gets checked, by the caller: archives are packed anew now and then.
    cache = pooch.os_cache("pgmult")
    try:
        return Path(pooch.retrieve(url, known_hash=None, fname=name, path=cache))
    except OSError as error:  # no network, no such page, a full disk: all of them
        raise OSError(
            f"{url} cannot be downloaded ({type(error).__name__}): try again later, save it as"
            f" {cache / name}, or set PGMULT_DATA to a folder that holds the data"
        ) from None
