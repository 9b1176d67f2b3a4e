"""Downloads are kept, and one that fails says what to do."""

import http.server
import threading
from functools import partial

import pytest

from examples.papers.downloads import download


def test_a_file_is_downloaded_once(monkeypatch, tmp_path):
    pytest.importorskip("pooch", reason="the optional download helper is not installed")
    (tmp_path / "ap.tgz").write_bytes(b"one")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/ap.tgz"
        assert download(url, "ap.tgz").read_bytes() == b"one"
        server.shutdown()
    assert download(url, "ap.tgz").read_bytes() == b"one", "from the cache"


def test_there_is_no_network(monkeypatch):
    pooch = pytest.importorskip("pooch", reason="the optional download helper is missing")

    def refuse(*arguments, **options):
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    with pytest.raises(OSError, match=r"a.tgz cannot be downloaded \(Conn.*set PGMULT_DATA"):
        download("http://somewhere.org/a.tgz", "a.tgz")
