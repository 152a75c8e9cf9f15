"""Bars of loops: the values are those of the loop alone, the steps add up, and calls of the host are few."""

import io
import sys
import threading
import types

import numpy as np
import pytest

pytestmark = pytest.mark.ours


@pytest.fixture
def progress(jax):
    return jax.progress


class Bars(list):
    """Makes bars that record their updates."""

    def __call__(self, total, desc):
        bar = types.SimpleNamespace(total=total, desc=desc, steps=[], closed=0)
        bar.update = bar.steps.append
        bar.close = lambda: setattr(bar, "closed", bar.closed + 1)
        self.append(bar)
        return bar


@pytest.fixture
def bars():
    return Bars()


def whole(bars, total):
    """Each bar went all the way, and was asked no more often than its pace allows at the start."""
    return all(sum(b.steps) == total and b.closed == 1 and len(b.steps) < 60 for b in bars)


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 1000])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_the_scan_without(jax, jnp, lax, progress, bars, n, reverse):
    f = lambda c, x: (c * 0.9 + x["a"], (c, x["b"][0]))
    xs = {"a": jnp.sin(jnp.arange(n)), "b": jnp.arange(2 * n).reshape(n, 2)}
    want = lax.scan(f, 1.0, xs, reverse=reverse)
    got = jax.jit(lambda xs: progress.scan(f, 1.0, xs, reverse=reverse, desc="d", bar=bars))(xs)
    jax.effects_barrier()
    jax.tree.map(np.testing.assert_array_equal, got, want)
    assert [(b.total, b.desc) for b in bars] == [(n, "d")] and whole(bars, n)


@pytest.mark.parametrize("n", [0, 1, 300, 5000])
def test_fori_loop(jax, jnp, lax, progress, bars, n):
    body = lambda i, x: x * 0.5 + i
    got = jax.jit(lambda x: progress.fori_loop(3, 3 + n, body, x, bar=bars))(2.0)
    jax.effects_barrier()
    assert got == lax.fori_loop(3, 3 + n, body, 2.0)
    assert len(bars) == (n > 0) and whole(bars, n)


def test_fori_loop_of_a_traced_bound(jax, jnp, lax, progress, bars):
    got = jax.jit(lambda n: progress.fori_loop(0, n, lambda i, x: x + i, 0, bar=bars))(1000)
    jax.effects_barrier()
    assert got == 499500 and bars[0].total is None and whole(bars, 1000)


def test_while_loop(jax, jnp, progress, bars):
    got = jax.jit(lambda x: progress.while_loop(lambda x: x < 700, lambda x: x + 1, x, total=1000, bar=bars))(0)
    jax.effects_barrier()
    assert got == 700 and bars[0].total == 1000 and whole(bars, 700)
    assert progress.while_loop(lambda x: x < 0, lambda x: x + 1, 5, bar=bars) == 5
    jax.effects_barrier()
    assert whole(bars[1:], 0)


def test_loops_without_steps_and_scans_without_inputs(jax, jnp, lax, progress, bars):
    assert progress.scan(lambda c, _: (c + 1, None), 0, None, 10, bar=bars) == (10, None)
    jax.effects_barrier()
    assert whole(bars, 10)
    _, ys = progress.scan(lambda c, x: (c, x), 1, jnp.zeros((0, 2)), bar=bars)
    assert ys.shape == (0, 2) and len(bars) == 1


def test_transforms_pass_through(jax, jnp, lax, progress, bars):
    def loss(loop):
        return lambda x: loop(lambda c, a: (jnp.sin(c) + a * x, c), x, jnp.linspace(0, 1, 400))[1].sum()

    ours, plain = loss(lambda *a: progress.scan(*a, bar=bars)), loss(lax.scan)
    for transform in (jax.grad, jax.jit, lambda f: jax.jit(jax.grad(f)), lambda f: lambda x: jax.jvp(f, (x,), (1.0,))[1]):
        np.testing.assert_allclose(transform(ours)(0.3), transform(plain)(0.3), rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(ours)(jnp.arange(3.0)), jax.vmap(plain)(jnp.arange(3.0)), rtol=1e-5)
    jax.effects_barrier()
    assert len(bars) >= 5 and whole(bars, 400)


def test_runs_in_threads_have_bars_of_their_own(jax, jnp, progress, bars):
    f = jax.jit(lambda x: progress.fori_loop(0, 2000, lambda i, x: jnp.cos(x), x, bar=bars))
    threads = [threading.Thread(target=lambda: f(1.0).block_until_ready()) for _ in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    jax.effects_barrier()
    assert len(bars) == 4 and whole(bars, 2000)


def test_errors_of_the_loop_stay(jax, jnp, progress, bars):
    with pytest.raises(ValueError, match=r"bar must be one of 'tqdm', 'rich', 'plain', or a function of \(total, desc\), got 'text'"):
        progress.scan(lambda c, x: (c, x), 0, jnp.arange(3), bar="text")
    with pytest.raises(ValueError, match="scan got `length` argument of 4 which disagrees with leading axis sizes"):
        progress.scan(lambda c, x: (c, x), 0, jnp.arange(3), 4, bar=bars)
    with pytest.raises(TypeError):
        progress.scan(lambda c, x: (c + 0.5, x), jnp.int32(0), jnp.arange(3), bar=bars)


def test_the_line_of_text(progress, monkeypatch):
    out = io.StringIO()
    line = progress.Line(1000, "training", out)
    line.update(400)
    assert out.getvalue() == ""  # no terminal: the end is all that is written
    assert line.text(0.5) == "training:  40% 400/1000" and line.text(62) == "training:  40% 400/1000 [01:02<01:33]"
    line.update(600)
    line.close()
    assert out.getvalue() == "training: 100% 1000/1000\n"
    assert progress.Line(None, None, out).text(3700) == "0 [1:01:40]"
    monkeypatch.setattr(out, "isatty", lambda: True)
    line = progress.Line(2, None, out)
    line.update(1)
    line.update(1)
    line.close()
    assert out.getvalue().endswith("\r 50% 1/2\r100% 2/2\r100% 2/2\n")


def test_tqdm_draws_where_it_is_installed(jax, jnp, progress, bars, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=lambda total, desc: bars(total, desc)))
    progress.fori_loop(0, 5, lambda i, x: x, 0, desc="five", bar="tqdm")
    jax.effects_barrier()
    assert bars[0].desc == "five" and whole(bars, 5)


def test_the_loop_has_no_callback_inside_its_steps(jax, jnp, progress, bars):
    """The body of the loop proper is the user's, and nothing else: what counts stands between pieces."""
    program = jax.make_jaxpr(lambda x: progress.scan(lambda c, _: (jnp.sin(c), None), x, None, 1000, bar=bars)[0])(1.0)
    (outer,) = [e for e in program.eqns if e.primitive.name == "scan" and e.params["length"] == 256]
    (inner,) = [e for e in outer.params["jaxpr"].eqns if e.primitive.name == "scan"]
    assert inner.params["length"] == 3 and [e.primitive.name for e in inner.params["jaxpr"].eqns] == ["sin"]
