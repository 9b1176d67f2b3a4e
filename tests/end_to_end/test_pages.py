"""Pages of reports in a real browser: axe-core finds nothing, by day and by night.

Needs Chromium or Chrome, and ``axe.min.js`` of axe-core at ``$PGMULT_AXE`` (``npm install
axe-core``); skipped where one of them is missing.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import pgmult
from pgmult.fields import MultinomialGP, report
from pgmult.fields.covariances import Matern
from pgmult.fields.tables import field_of
from pgmult.sampling import Origin

AXE = Path(os.environ.get("PGMULT_AXE", "axe.min.js"))
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
RUN = """axe.run().then(found => {
  const told = document.createElement("pre");
  told.id = "told";
  told.textContent = JSON.stringify(found.violations.map(v => [v.id, v.nodes.map(n => n.html)]));
  document.body.append(told);
})"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER, reason="there is no Chromium"),
    pytest.mark.skipif(not AXE.is_file(), reason="there is no axe-core at $PGMULT_AXE"),
]


def violations(page, folder, *, dark=False):
    """What axe-core complains of."""
    script = f"<script>{AXE.read_text(encoding='utf-8')}</script><script>{RUN}</script></body>"
    file = folder / "page.html"
    file.write_text(page.replace("</body>", script), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               "--virtual-time-budget=20000", f"--user-data-dir={folder / 'profile'}"]  # fmt: skip
    command += ["--blink-settings=preferredColorScheme=0"] if dark else []
    done = subprocess.run(
        [*command, file.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    (told,) = re.findall(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(html.unescape(told))


def field_page():
    rows = {"year": [], "state": [], "name": [], "n": []}
    rng = np.random.default_rng(0)
    for year in range(2000, 2006):
        for state in ("NY", "TX"):
            for name, n in zip("ABC", rng.multinomial(50, [0.5, 0.3, 0.2]), strict=True):
                for key, value in zip(rows, (year, state, name, n), strict=True):
                    rows[key].append(value)
    data = field_of(
        rows, inputs=["year", "state"], category="name", count="n",
        places={"state": pgmult.datasets.us_states()},
    )  # fmt: skip
    model = MultinomialGP(Matern(1.5, 5.0))
    psi = 0.3 * rng.standard_normal((2, 30, data.num_sites, 2))
    made = pgmult.Posterior(
        {"psi": psi}, dims={"psi": ("site", "stick")}, origin=Origin.of(model, data)
    )
    truth = np.tile([0.5, 0.3, 0.2], (data.num_rows, 1))
    hidden = data.counts * 0
    return report(made, data=data, title="Names", held_out=hidden, truth=truth).html()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def topic_page():
    topics = pgmult.topics
    corpus = topics.as_corpus(
        np.random.default_rng(0).poisson(1.0, size=(30, 12)), list("abcdefghijkl")
    )
    model = topics.CorrelatedTopics(3, start_sweeps=2)
    posterior = pgmult.sample(
        model, corpus, draws=10, tune=5, chains=2, random_seed=0, progressbar=False,
        keep=(*model.default_keep, "theta"),
    )  # fmt: skip
    return topics.report(posterior, title="Topics").html()


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("make", [field_page, topic_page], ids=["fields", "topics"])
def test_pages_are_accessible(make, dark, tmp_path):
    assert violations(make(), tmp_path, dark=dark) == []


def test_the_check_finds_what_is_wrong(tmp_path):
    page = field_page().replace('lang="en"', "")
    assert [name for name, _ in violations(page, tmp_path)] == ["html-has-lang"]
