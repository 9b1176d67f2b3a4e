"""The driver: what is drawn, what is kept, and what happens when something goes wrong."""

import io
import os
import signal
import subprocess
import sys
import threading
import warnings
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from chain_models import Faulty, Normal, NormalState, Permuted, Walk, same, values

import pgmult
from pgmult.compiled import rows as _rows
from pgmult.core import machine
from pgmult.sampling import chain as _chain
from pgmult.sampling import memory


def short(model=None, **options):
    options = {"draws": 40, "tune": 10, "chains": 3, "random_seed": 5} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
        return pgmult.sample(model or Normal(), values(), **options)


def number(rng):
    """Of the chain that a generator belongs to."""
    return rng.bit_generator.seed_seq.spawn_key[-1]


def test_draws_are_those_of_the_plain_loop():
    """Each thin-th sweep after tuning, from the chain's own child of the seed."""
    model, data = Normal(), values()
    posterior = short(thin=3, keep=["mean", "steps", "moments", "latent"])
    for chain, seed in enumerate(np.random.SeedSequence(5).spawn(3)):
        rng = np.random.Generator(np.random.Philox(seed))
        state = model.init(rng, data)
        for sweep in range(1, 10 + 3 * 40 + 1):
            state = model.step(rng, state, data)
            if sweep > 10 and (sweep - 10) % 3 == 0:
                draw = (sweep - 10) // 3 - 1
                assert posterior["mean"][chain, draw] == state.mean
                assert posterior["steps"][chain, draw] == sweep
                np.testing.assert_array_equal(posterior["latent"][chain, draw], state.latent)
                expected = model.moments(state, data)
                np.testing.assert_array_equal(posterior["moments"][chain, draw], expected)
                expected = model.log_likelihood(state, data)
                assert posterior.sample_stats["log_likelihood"][chain, draw] == expected


def test_posterior_is_right():
    """mean - x.mean() over its scale is Student's t with n - 1 degrees of freedom."""
    data = values(n=12)
    posterior = pgmult.sample(Normal(), data, draws=1500, tune=50, chains=4, random_seed=2)
    mean = posterior["mean"]
    scale = data.x.std(ddof=1) / np.sqrt(12)
    t = (mean - data.x.mean()) / scale
    error = pgmult.sampling.diagnostics.mcse_mean(t)
    assert abs(t.mean()) < 4 * error
    assert t.var() == pytest.approx(11 / 9, rel=0.1)


def test_dims_coords_and_dtypes():
    posterior = short(keep=["latent", "steps", "moments"])
    assert list(posterior) == ["latent", "steps", "moments"]
    assert posterior.dims["latent"] == ("chain", "draw", "item")
    assert posterior["latent"].shape == (3, 40, 20)
    assert posterior.coords["item"][3] == "item 3"
    assert posterior.coords["moment"].tolist() == ["first", "second"]
    assert posterior["steps"].dtype == np.int64
    assert posterior.attrs["random_seed"] == 5
    assert len(posterior.attrs["seconds"]) == 3


def test_draws_do_not_depend_on_cores_or_chains():
    reference = short(cores=1)
    for cores in (2, 3, 16):
        assert same(reference, short(cores=cores))
    fewer = short(chains=2, cores=2)
    np.testing.assert_array_equal(fewer["mean"], reference["mean"][:2])


def test_draws_do_not_depend_on_the_order_of_chains():
    """Chain 0 waits at every sweep until chain 1 is done."""
    done = threading.Event()

    def hold_first(sweep):
        if sweep.chain == 1 and sweep.index == 49:
            done.set()

    class Held(Normal):
        def step(self, rng, state, data):
            if number(rng) == 0:
                assert done.wait(60)
            return Normal.step(self, rng, state, data)

    held = short(Held(), chains=2, cores=2, callback=hold_first)
    assert same(held, short(chains=2, cores=1))


def test_a_seed_left_out_is_written_down():
    first = short(random_seed=None)
    assert not same(first, short(random_seed=None))
    assert same(first, short(random_seed=first.attrs["random_seed"]))


@dataclass(frozen=True)
class Found:
    state: NormalState
    value: float

    def facts(self):
        return {"value": self.value, "support": [0.5, 1.0]}


class Searching(Normal):
    """Says where its search was, and how many leaves it was asked for."""

    def find_start(self, rng, data, leaves):
        return Found(self.init(rng, data), float(leaves))


def first_states(**options):
    """Where each chain was after one sweep without randomness of its own."""
    seen = {}

    class Still(Normal):
        def step(self, rng, state, data):
            return state

    short(Still(), callback=lambda sweep: seen.setdefault(sweep.chain, sweep.state), **options)
    return [seen[chain].mean for chain in sorted(seen)]


def test_chains_begin_at_their_own_start_or_at_a_shared_one():
    assert len(set(first_states())) == 3
    (mean,) = set(first_states(starts="shared"))
    assert {mean} == set(first_states(starts="shared", chains=5, cores=1))
    assert mean not in first_states()
    assert {mean} != set(first_states(starts="shared", random_seed=6))
    state = NormalState(1.5, 1.0, 0, np.zeros(20))
    assert first_states(starts=state) == [1.5, 1.5, 1.5]
    assert first_states(starts=Found(state, 0.0)) == [1.5, 1.5, 1.5]
    given = [Found(state, 0.0), replace(state, mean=-1.0), replace(state, mean=0.0)]
    assert first_states(starts=given) == first_states(starts=tuple(given)) == [1.5, -1.0, 0.0]


def test_a_posterior_says_where_its_chains_began(tmp_path):
    assert short().attrs["starts"] == "independent"
    state = NormalState(1.5, 1.0, 0, np.zeros(20))
    given = short(starts=[Found(state, 2.0), state, Found(state, 3.0)]).attrs
    assert given["starts"] == "given"
    assert [facts["value"] for facts in given["start_facts"]] == [2.0, 3.0]
    shared = short(Searching(), starts="shared", store=tmp_path / "run")
    assert shared.attrs["starts"] == "shared"
    assert shared.attrs["start_facts"] == [{"value": 3.0, "support": [0.5, 1.0]}]
    kept = pgmult.load(tmp_path / "run", model=Searching()).attrs
    assert kept == shared.attrs
    memory = short(Searching(), starts="shared")
    assert same(memory, shared)
    shared.save(tmp_path / "again")
    assert pgmult.load(tmp_path / "again", model=Searching()).attrs["starts"] == "shared"


@pytest.mark.filterwarnings("ignore::pgmult.ConvergenceWarning")
def test_a_shared_start_survives_a_break(tmp_path):
    """The chains that had not begun start where the others did."""
    whole = short(starts="shared", draws=60)

    def stop(sweep):
        if sweep.chain == 1 and sweep.index == 25:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        short(starts="shared", draws=60, store=tmp_path / "run", callback=stop, cores=1)
    again = pgmult.resume(tmp_path / "run", model=Normal(), data=values())
    assert same(again, whole)
    assert again.attrs["starts"] == "shared"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"starts": "mine"}, ValueError, "starts must be one of independent, shared, got 'mine'"),
        (
            {"starts": None},
            TypeError,
            "starts must be 'independent', 'shared', a start, a state or a list",
        ),
        ({"starts": [NormalState(0.0, 1.0, 0, np.zeros(20))]}, ValueError, "each of the 3 chains"),
    ],
)
def test_starts_that_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        short(**options)


@pytest.mark.parametrize(("chains", "cores", "expected"), [(1, 4, 4), (2, 4, 2), (4, 2, 1)])
def test_spare_cores_go_to_rows(chains, cores, expected):
    seen = set()
    together = threading.Barrier(min(chains, cores))

    class Watching(Normal):
        def init(self, rng, data):
            together.wait(60)
            return Normal.init(self, rng, data)

        def step(self, rng, state, data):
            seen.add(_rows.num_workers(10**6))
            return Normal.step(self, rng, state, data)

    short(Watching(), chains=chains, cores=cores)
    assert expected in seen
    assert max(seen) <= cores


def test_thread_inherits_the_callers_context():
    class Overflowing(Normal):
        def step(self, rng, state, data):
            np.array([1e300]) * np.array([1e300])
            return Normal.step(self, rng, state, data)

    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="sweep 0"):
        short(Overflowing())


# Callbacks and interrupts


def test_callback_sees_every_sweep_once():
    seen = []
    short(callback=seen.append, draws=6, tune=3, thin=2)
    assert sorted((s.chain, s.index) for s in seen) == [(c, i) for c in range(3) for i in range(15)]
    assert all(s.tuning == (s.index < 3) for s in seen)
    assert all(s.state.steps == s.index + 1 for s in seen)


def interrupt_at(chain, index):
    def callback(sweep):
        if (sweep.chain, sweep.index) == (chain, index):
            raise KeyboardInterrupt

    return callback


def test_interrupt_returns_the_draws_so_far():
    with pytest.warns(UserWarning, match="interrupted: 25 of 40 draws a chain"):
        posterior = short(chains=1, callback=interrupt_at(0, 34))
    assert posterior["mean"].shape == (1, 25)
    np.testing.assert_array_equal(posterior["mean"], short(chains=1)["mean"][:, :25])
    assert "25 draws (of 40 planned)" in repr(posterior)


def test_interrupt_returns_the_largest_rectangle():
    """One chain at a time: two are whole, the third has 5 draws, which would cut them to 5."""
    with pytest.warns(UserWarning, match="interrupted: 40 of 40"):
        posterior = short(cores=1, callback=interrupt_at(2, 14))
    assert posterior["mean"].shape == (2, 40)
    assert posterior.coords["chain"].tolist() == [0, 1]


def test_interrupt_before_any_draw_is_an_interrupt():
    with pytest.raises(KeyboardInterrupt, match="before a draw was kept"):
        short(callback=interrupt_at(0, 4), cores=1)


def test_interrupt_of_a_stored_run_loses_nothing(tmp_path):
    store = tmp_path / "run"
    with pytest.warns(UserWarning, match=r"interrupted: 40 of 40 .*pgmult.resume\('.*run'\)"):
        short(cores=1, callback=interrupt_at(2, 14), store=store)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pgmult.ConvergenceWarning)
        whole = pgmult.resume(store, model=Normal(), data=values())
    assert same(whole, short())


SIGNALLED = """
import signal, warnings, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent may ignore it
import pgmult
from chain_models import Normal, values

def report(sweep):
    if sweep.index == 200:
        print("drawing", flush=True)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    posterior = pgmult.sample(
        Normal(), values(), draws=10**7, tune=0, chains=2, cores=2, random_seed=1, callback=report,
        keep=["mean"],
    )
print(posterior.num_chains, posterior.num_draws, caught[0].message)
"""


def test_a_real_interrupt_returns_the_draws_so_far():
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": ""}
    with subprocess.Popen(
        [sys.executable, "-c", SIGNALLED], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        limit = threading.Timer(60, child.kill)
        limit.start()
        try:
            assert child.stdout.readline() == "drawing\n"
            assert child.stdout.readline() == "drawing\n"
            child.send_signal(signal.SIGINT)
            output = child.stdout.read()
        finally:
            limit.cancel()
            child.kill()
    chains, draws, *message = output.split()
    assert int(chains) in (1, 2)
    assert 200 <= int(draws) < 10**7
    assert message[0] == "interrupted:"


# Errors in a chain


def test_an_error_names_chain_and_sweep_and_stops_the_others():
    seen = []
    with pytest.raises(ArithmeticError, match="not positive definite") as caught:
        short(Faulty(sweep=30), callback=seen.append, draws=10**6, keep=["mean"], cores=1)
    assert caught.value.__notes__ == ["in chain 0, sweep 30 (after tuning)"]
    assert {s.chain for s in seen} == {0}


def test_an_error_at_the_start():
    class Lost(Normal):
        def init(self, rng, data):
            raise ValueError("no words")

    with pytest.raises(ValueError, match="no words") as caught:
        short(Lost(), cores=1)
    assert caught.value.__notes__ == ["in chain 0, at its start"]


def test_an_error_keeps_the_stored_draws(tmp_path):
    store = tmp_path / "run"
    with pytest.raises(ArithmeticError) as caught:
        short(Faulty(sweep=30), store=store, chains=2, cores=1)
    assert "pgmult.load(" in caught.value.__notes__[1]
    with pytest.warns(UserWarning, match=r"left out of 20 draws a chain: 1 \(0 draws\)"):
        posterior = pgmult.load(store)
    np.testing.assert_array_equal(posterior["mean"], short(chains=1)["mean"][:, :20])


# What the arguments may be


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"draws": 0}, ValueError, "draws must be at least 1, got 0"),
        ({"draws": 2.0}, TypeError, "draws must be an integer, got 2.0"),
        ({"tune": -1}, ValueError, "tune must be at least 0, got -1"),
        ({"chains": 0}, ValueError, "chains must be at least 1"),
        ({"cores": 0}, ValueError, "cores must be at least 1"),
        ({"thin": 0}, ValueError, "thin must be at least 1"),
        ({"random_seed": -3}, ValueError, "random_seed must be at least 0, got -3"),
        (
            {"random_seed": np.random.default_rng(0)},
            TypeError,
            "random_seed must be an integer or None, got .*Generator",
        ),
        ({"progressbar": 1}, TypeError, "progressbar must be True or False, got 1"),
        ({"callback": 1}, TypeError, "callback must be callable, got 1"),
        (
            {"keep": ["mean", "sd"]},
            ValueError,
            "must name variables of the model, got 'sd'; mean, var, latent, moments, steps",
        ),
        ({"keep": "log_likelihood"}, ValueError, "which is always in sample_stats"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        short(**options)


def test_not_a_model():
    with pytest.raises(TypeError, match=r"got the class itself: Normal\(\.\.\.\)"):
        pgmult.sample(Normal, values())
    with pytest.raises(TypeError, match=r"NormalState has no dims, init"):
        pgmult.sample(NormalState(0.0, 1.0, 0, np.zeros(3)), values())


def test_keep_one_or_none():
    assert list(short(keep="var")) == ["var"]
    nothing = short(keep=[])
    assert list(nothing) == []
    assert nothing.sample_stats["log_likelihood"].shape == (3, 40)


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        (lambda state: np.zeros((2, 2)), r"moments must have the axes \('moment',\)"),
        (lambda state: np.zeros(3), r"must have 2 entries along 'moment', as model.co"),
        (lambda state: np.array(["a", "b"]), r"must be an array of numbers, got dtype <U1"),
        (lambda state: np.zeros(2 + state.steps, int)[: 2 - (state.steps > 20)], "every draw"),
        (lambda state: np.zeros(2, int if state.steps < 20 else float), "in every draw, got"),
    ],
)
def test_a_models_variables_keep_their_shape(moments, message):
    class Odd(Normal):
        pass

    Odd.moments = lambda self, state, data: moments(state)
    with pytest.raises((ValueError, TypeError), match=message):
        short(Odd())


def test_more_draws_than_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1e6)
    seen = []
    with pytest.raises(MemoryError, match=r"0\.0194 GB, latent alone 0\.0176 GB.*keep=.*thin=.*st"):
        short(draws=10**4, chains=11, keep=["latent", "mean"], callback=seen.append)
    assert not seen


def test_available_memory_is_plausible():
    assert 1e6 < machine.available_memory() < 1e15


# What is said in the end


def test_no_warning_where_all_is_well():
    pgmult.sample(Walk(rate=0.2), values(), draws=2000, chains=4, tune=10, random_seed=1)


def test_warns_of_slow_chains_by_name():
    with pytest.warns(pgmult.ConvergenceWarning) as caught:
        pgmult.sample(Walk(rate=0.999), values(), draws=500, tune=0, random_seed=1)
    (warning,) = caught
    text = str(warning.message)
    assert "of 4 kept values 4 have a split R-hat above 1.01 (worst: " in text
    assert "4 have a bulk or tail effective sample size below 100 a chain" in text
    assert "position[" in text
    assert warning.filename == __file__


def test_labels_may_differ_between_chains():
    """Each label of each chain mixes at once; between chains they are in other orders."""
    posterior = pgmult.sample(Permuted(), values(), draws=1000, tune=10, random_seed=3)
    orders = {tuple(np.argsort(chain)) for chain in posterior["position"].mean(axis=1)}
    assert len(orders) > 1
    pooled = pgmult.Posterior(dict(posterior), dims={"position": ("label",), "overall": ()})
    assert "R-hat" in pooled.convergence_problems()
    rows = posterior.summary("position").rows
    assert rows[0] == "position[0] chain 0"
    assert len(rows) == 12


def test_coordinates_in_an_arbitrary_basis_are_not_judged():
    class Turning(Walk):
        basis_dims = frozenset({"place"})
        dims = Walk.dims | {"overall": ()}
        default_keep = ("position", "overall")

        def overall(self, state, data):
            return float(state.position.sum())

    with pytest.warns(pgmult.ConvergenceWarning) as caught:
        pgmult.sample(Turning(rate=0.999), values(), draws=500, tune=0, random_seed=1)
    (warning,) = caught
    assert "overall" in str(warning.message)
    assert "position" not in str(warning.message)


def test_the_log_likelihood_is_compared_between_chains():
    class Stuck(Permuted):
        def log_likelihood(self, state, data):
            return float(state.position[0])

    with pytest.warns(pgmult.ConvergenceWarning, match=r"1 have a split R-hat .*log_likelihood"):
        pgmult.sample(Stuck(), values(), draws=1000, tune=10, random_seed=3)


def test_too_few_draws_to_diagnose():
    with pytest.warns(pgmult.ConvergenceWarning, match="3 draws a chain are too few"):
        posterior = pgmult.sample(Normal(), values(), draws=3, tune=0)
    assert "(3 draws a chain are too few for diagnostics)" in str(posterior.summary())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_only(capsys, monkeypatch):
    short()
    assert capsys.readouterr() == ("", "")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "150")
    short(progressbar=False)
    assert screen.getvalue() == ""
    posterior = short()
    line = screen.getvalue().split("\r")[-1]
    assert line.startswith("sampling 150/150 sweeps  ")
    assert "sweeps/s  0:00 left  log likelihood " in line
    for value in posterior.sample_stats["log_likelihood"][:, -1]:
        assert f"{value:.7g}" in line
    assert line.endswith("\n")


def test_watching_does_not_change_draws(monkeypatch):
    expected = short()
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(_chain, "_SHOW_SECONDS", 0.0)
    assert same(expected, short(callback=lambda sweep: None))


def test_logs_have_a_line_a_minute(monkeypatch):
    from pgmult.sampling import _progress

    log, clock = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
    progress = _progress.Progress(1000)
    for second in range(0, 200, 5):
        clock[0] = float(second)
        progress.show(second, [-12.5], "tuning")
    progress.close()
    lines = log.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["60/1,000", "120/1,000", "180/1,000"]


def test_compiling_is_said_once(monkeypatch):
    from pgmult.sampling import _progress

    class Busy:
        running, done = 1, 0

    log, clock = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(_progress, "compilations", Busy)
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
    progress = _progress.Progress(10)
    for second in range(9):
        clock[0] = float(second)
        progress.show(0, [], "tuning")
    assert log.getvalue() == "compiling, once: the machine code is kept for next time\n"


def test_notebooks_have_one_line_that_is_updated(monkeypatch):

    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle["text/plain"])

    def display(bundle, raw, display_id):
        shown.append(bundle["text/plain"])
        return Handle()

    shell = SimpleNamespace(kernel=object())
    fake = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    posterior = short()
    assert shown[0].startswith(("tuning", "sampling"))
    made = posterior.num_chains * posterior.num_draws
    total = int(shown[-1].split("/")[1].split()[0].replace(",", ""))
    assert total >= made
    assert shown[-1].startswith(f"sampling {total:,}/{total:,} sweeps")  # not the last but one
    count = len(shown)
    short(progressbar=False)
    assert len(shown) == count
