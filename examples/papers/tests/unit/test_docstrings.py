"""The corpus of what numpy and scipy say of themselves."""

import subprocess
import sys

import pytest

from examples.papers import docstrings
from examples.papers.docstrings import demo_corpus
from pgmult.datasets.text import tokenize


@pytest.mark.slow
def test_it_is_thousands_of_documents_of_english():
    corpus = demo_corpus()
    assert corpus.num_documents >= 1500
    assert corpus.num_words == 2000
    assert corpus.num_tokens >= 50_000
    assert len(set(corpus.names.tolist())) == corpus.num_documents
    assert "scipy.optimize.minimize" in corpus.names
    vocabulary = set(corpus.vocabulary.tolist())
    assert {"matrix", "probability", "fourier", "spline", "polynomial"} <= vocabulary
    junk = {"ndarray", "dtype", "kwargs", "returns", "optional", "axis_", "np", "arange", "the"}
    assert not junk & vocabulary


def test_code_and_markup_are_stripped():
    text = """frobnicate(x, /, *, out=None)

    Frobnicate the waves.

    Uses ``inner_code`` and :func:`other_name` and the :math:`x^2` formula, see
    `the page <https://example.org/page>`_.

    .. versionadded:: 1.2
       Never mind.

    Parameters
    ----------
    secret : array_like
        Heights of the waves::

            literal(code)

        in metres.

    See Also
    --------
    elsewhere : Another.

    Notes
    -----
    Calm seas.

    Examples
    --------
    >>> frobnicate(1)
    Hidden output
    """
    words = tokenize(" ".join(docstrings._paragraphs(text)))
    assert words == tokenize(
        "Frobnicate the waves. Uses and and the formula, see. Heights of the waves in metres."
        " Calm seas."
    )


@pytest.mark.slow
def test_same_in_another_process():
    script = (
        "import sys; [__import__(name) for name in sys.argv[1:]];"
        "from examples.papers.docstrings import demo_corpus; import hashlib; c = demo_corpus();"
        "print(hashlib.sha256(c.words.tobytes() + c.counts.tobytes()"
        " + ' '.join(c.vocabulary).encode()).hexdigest())"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", script, *already_imported],
            capture_output=True, text=True, check=True,
        ).stdout
        for already_imported in ([], ["scipy.special", "scipy.signal", "numba"])
    ]  # fmt: skip
    assert runs[0] == runs[1]
