"""The traceback of an error in the user's code: the user's frames alone, as `jax_traceback_filtering` says."""

import builtins
import importlib
import os
import pathlib
import subprocess
import sys
import traceback
import types

import numpy as np
import pytest

REMOVED = "For simplicity, JAX has removed its internal frames from the traceback of the following exception."


def fail(*_, **__):
    raise ValueError("boom")


def part(jax, name):
    return importlib.import_module(f"{jax.__name__}.{name}")


def one_device(jax, f, jit=False):
    sharding = part(jax, "sharding")
    mesh = sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    mapped = jax.shard_map(f, mesh=mesh, in_specs=sharding.PartitionSpec(), out_specs=sharding.PartitionSpec())
    return jax.jit(mapped) if jit else mapped


def ruled(jax, kind, *rules):
    f = getattr(jax, kind)(lambda x: x)
    {"custom_jvp": lambda: f.defjvp(*rules), "custom_vjp": lambda: f.defvjp(*rules)}[kind]()
    return f


def mapped_rule(jax):
    f = part(jax, "custom_batching").custom_vmap(lambda x: x)
    f.def_vmap(fail)
    return f


def without_jit(jax, x):
    with jax.disable_jit():
        return jax.jit(fail)(x)


# name: a program whose own code fails below the library
PROGRAMS = {
    "jit": lambda jax, x: jax.jit(fail)(x),
    "jit in jit": lambda jax, x: jax.jit(lambda x: jax.jit(fail)(x))(x),
    "jit with shardings": lambda jax, x: jax.jit(fail, out_shardings=part(jax, "sharding").SingleDeviceSharding(jax.devices()[0]))(x),
    "jit of a number": lambda jax, x: jax.jit(fail, static_argnums=0)(3),
    "disable_jit": without_jit,
    "jit.lower": lambda jax, x: jax.jit(fail).lower(x),
    "jit.trace": lambda jax, x: jax.jit(fail).trace(x),
    "jit.eval_shape": lambda jax, x: jax.jit(fail).eval_shape(x),
    "grad": lambda jax, x: jax.grad(fail)(1.0),
    "value_and_grad": lambda jax, x: jax.value_and_grad(fail)(1.0),
    "vmap": lambda jax, x: jax.vmap(fail)(x),
    "jit(vmap(grad))": lambda jax, x: jax.jit(jax.vmap(jax.grad(fail)))(x),
    "jvp": lambda jax, x: jax.jvp(fail, (x,), (x,)),
    "vjp": lambda jax, x: jax.vjp(fail, x),
    "linearize": lambda jax, x: jax.linearize(fail, x),
    "linear_transpose": lambda jax, x: jax.linear_transpose(fail, x),
    "jacfwd": lambda jax, x: jax.jacfwd(fail)(x),
    "jacrev": lambda jax, x: jax.jacrev(fail)(x),
    "hessian": lambda jax, x: jax.hessian(fail)(x),
    "checkpoint": lambda jax, x: jax.checkpoint(fail)(x),
    "grad of checkpoint": lambda jax, x: jax.grad(jax.checkpoint(fail))(1.0),
    "closure_convert": lambda jax, x: jax.closure_convert(fail, x),
    "make_jaxpr": lambda jax, x: jax.make_jaxpr(fail)(x),
    "eval_shape": lambda jax, x: jax.eval_shape(fail, x),
    "named_call": lambda jax, x: jax.named_call(fail)(x),
    "export": lambda jax, x: part(jax, "export").export(jax.jit(fail))(x),
    "custom_jvp": lambda jax, x: jax.custom_jvp(fail)(1.0),
    "custom_jvp's rule": lambda jax, x: jax.grad(ruled(jax, "custom_jvp", fail))(1.0),
    "custom_vjp": lambda jax, x: jax.custom_vjp(fail)(1.0),
    "custom_vjp's fwd": lambda jax, x: jax.grad(ruled(jax, "custom_vjp", fail, fail))(1.0),
    "custom_vjp's bwd": lambda jax, x: jax.grad(ruled(jax, "custom_vjp", lambda x: (x, None), fail))(1.0),
    "custom_vjp's bwd in vjp": lambda jax, x: jax.vjp(ruled(jax, "custom_vjp", lambda x: (x, None), fail), 1.0)[1](1.0),
    "custom_gradient": lambda jax, x: jax.custom_gradient(fail)(x),
    "custom_vmap's rule": lambda jax, x: jax.vmap(mapped_rule(jax))(x),
    "scan": lambda jax, x: jax.lax.scan(fail, x, None, length=3),
    "scan in jit": lambda jax, x: jax.jit(lambda x: jax.lax.scan(fail, x, None, length=3))(x),
    "fori_loop": lambda jax, x: jax.lax.fori_loop(0, 3, fail, x),
    "fori_loop of traced length": lambda jax, x: jax.jit(lambda n: jax.lax.fori_loop(0, n, fail, x))(3),
    "while_loop's body": lambda jax, x: jax.lax.while_loop(lambda c: True, fail, x),
    "while_loop's condition": lambda jax, x: jax.lax.while_loop(fail, lambda c: c, x),
    "cond": lambda jax, x: jax.lax.cond(x.sum() > 0, fail, fail, x),
    "switch": lambda jax, x: jax.lax.switch(1, [fail, fail], x),
    "map": lambda jax, x: jax.lax.map(fail, x),
    "map in batches": lambda jax, x: jax.lax.map(fail, x, batch_size=2),
    "associative_scan": lambda jax, x: jax.lax.associative_scan(fail, x),
    "reduce": lambda jax, x: jax.lax.reduce(x, np.float32(0), fail, (0,)),
    "reduce_window": lambda jax, x: jax.lax.reduce_window(x, np.float32(0), fail, (2,), (1,), "VALID"),
    "custom_root": lambda jax, x: jax.lax.custom_root(fail, 1.0, lambda f, x: x, lambda g, y: y),
    "custom_linear_solve": lambda jax, x: jax.lax.custom_linear_solve(fail, x, lambda matvec, b: b),
    "platform_dependent": lambda jax, x: jax.lax.platform_dependent(x, default=fail),
    "shard_map": lambda jax, x: one_device(jax, fail)(x),
    "shard_map in jit": lambda jax, x: one_device(jax, fail, jit=True)(x),
    "pmap": lambda jax, x: jax.pmap(fail)(x[:1]),
    "checkify": lambda jax, x: part(jax, "experimental.checkify").checkify(fail)(x),
    "checkify in jit": lambda jax, x: jax.jit(part(jax, "experimental.checkify").checkify(fail))(x),
    "vectorize": lambda jax, x: part(jax, "numpy").vectorize(fail)(x),
    "piecewise": lambda jax, x: part(jax, "numpy").piecewise(x, [x > 0], [fail, 1.0]),
    "apply_along_axis": lambda jax, x: part(jax, "numpy").apply_along_axis(fail, 0, x),
    "apply_over_axes": lambda jax, x: part(jax, "numpy").apply_over_axes(fail, x, [0]),
    "fromfunction": lambda jax, x: part(jax, "numpy").fromfunction(fail, (3,)),
    "frompyfunc": lambda jax, x: part(jax, "numpy").frompyfunc(fail, 2, 1).reduce(x),
    "pad": lambda jax, x: part(jax, "numpy").pad(x, 1, mode=fail),
    "odeint": lambda jax, x: part(jax, "experimental.ode").odeint(fail, x, x),
    "jet": lambda jax, x: part(jax, "experimental.jet").jet(fail, (x,), ((x,),)),
    "minimize": lambda jax, x: part(jax, "scipy.optimize").minimize(fail, x, method="BFGS"),
    "cg": lambda jax, x: part(jax, "scipy.sparse.linalg").cg(fail, x),
    "gmres": lambda jax, x: part(jax, "scipy.sparse.linalg").gmres(fail, x),
    "funm": lambda jax, x: part(jax, "scipy.linalg").funm(part(jax, "numpy").eye(2), fail),
    "sparsify": lambda jax, x: part(jax, "experimental.sparse").sparsify(fail)(x),
    "sparse.grad": lambda jax, x: part(jax, "experimental.sparse").grad(fail)(1.0),
    "debug.callback": lambda jax, x: jax.debug.callback(fail, x),
    "an error of the library in jit": lambda jax, x: jax.jit(lambda x: jax.lax.psum(x, "absent"))(x),
    "a wrong shape in scan": lambda jax, x: jax.lax.scan(lambda c, _: (c[:1], None), x, None, length=2),
    "a cotangent of a wrong shape": lambda jax, x: jax.vjp(lambda x: x, x)[1](part(jax, "numpy").ones(4)),
    "a tangent of a wrong shape": lambda jax, x: jax.linearize(lambda x: x, x)[1](part(jax, "numpy").ones(4)),
    "no function": lambda jax, x: jax.jit(3),
}
INSIDE = ["jit", "jit in jit", "grad", "vmap", "jit(vmap(grad))", "scan", "cond", "while_loop's body", "map", "custom_vjp's bwd", "shard_map", "checkify"]


def raised(jax, name, mode):
    before = jax.config.read("jax_traceback_filtering")
    jax.config.update("jax_traceback_filtering", mode)
    try:
        PROGRAMS[name](jax, part(jax, "numpy").ones(3))
    except Exception as e:
        return e
    finally:
        jax.config.update("jax_traceback_filtering", before)
    pytest.fail("no error")


def ours(jax, error):
    """Whether each frame of the traceback is the library's."""
    home = str(pathlib.Path(jax.__file__).parent)
    return [f.f_code.co_filename.startswith(home) for f, _ in traceback.walk_tb(error.__traceback__)]


@pytest.mark.ours
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_traceback_shows_the_users_frames(jax, name):
    e = raised(jax, name, "auto")
    assert not any(ours(jax, e)), traceback.format_tb(e.__traceback__)
    assert [n for n in e.__notes__ if REMOVED in n] == ["--------------------\n" + REMOVED + " Set FERRAX_TRACEBACK_FILTERING=off to include these."]
    if str(e) == "boom":
        assert traceback.extract_tb(e.__traceback__)[-1].name == "fail"


@pytest.mark.parametrize("name", INSIDE)
def test_removed_frames_are_those_of_the_cause(jax, name):
    e = raised(jax, name, "remove_frames")
    assert not any(ours(jax, e)) and not getattr(e, "__notes__", ())
    whole = e.__cause__
    assert type(whole).__name__ == "UnfilteredStackTrace"
    assert str(whole).startswith("ValueError: boom\n\nThe stack trace below excludes JAX-internal frames.")
    names = [f.name for f in traceback.extract_tb(whole.__traceback__)]
    assert names[-1] == "fail" and len(names) >= len(traceback.extract_tb(e.__traceback__))


@pytest.mark.parametrize("name", [n for n in INSIDE if not n.startswith("jit")])
def test_hidden_frames_are_marked(jax, name):
    e = raised(jax, name, "tracebackhide")
    frames = [f for f, _ in traceback.walk_tb(e.__traceback__)]
    marked = [f.f_locals.get("__tracebackhide__", False) for f in frames]
    assert marked == ours(jax, e) and any(marked) and e.__cause__ is None and not getattr(e, "__notes__", ())


@pytest.mark.parametrize("name", [n for n in INSIDE if not n.startswith("jit")])
def test_nothing_is_hidden_where_filtering_is_off(jax, name):
    e = raised(jax, name, "off")
    assert any(ours(jax, e)) and e.__cause__ is None and not getattr(e, "__notes__", ())


def test_a_cause_of_the_users_stays(jax):
    def f(x):
        try:
            fail()
        except ValueError as e:
            raise TypeError("second") from e

    for mode in ("quiet_remove_frames", "remove_frames"):
        jax.config.update("jax_traceback_filtering", mode)
        try:
            with pytest.raises(TypeError, match="second") as caught:
                jax.lax.map(f, np.ones(2, np.float32))
        finally:
            jax.config.update("jax_traceback_filtering", "auto")
        cause = caught.value.__cause__ if mode == "quiet_remove_frames" else caught.value.__cause__.__cause__
        assert str(cause) == "boom"


@pytest.mark.ours
def test_notebooks_get_marks(jax, monkeypatch):
    monkeypatch.setattr(builtins, "get_ipython", lambda: None, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(version_info=(8, 0)))
    assert any(ours(jax, raised(jax, "scan", "auto")))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(version_info=(7, 0)))
    assert not any(ours(jax, raised(jax, "scan", "auto")))


def test_functions_keep_their_names_and_signatures(jax):
    import inspect
    import pickle

    for f in (jax.lax.scan, jax.vmap, jax.grad, jax.lax.cond, jax.jit):
        assert pickle.loads(pickle.dumps(f)) is f
        assert next(iter(inspect.signature(f).parameters)) in ("f", "fun", "pred", "args")


SCRIPT = """
import NAME as jax
def f(x):
    return {}[x]
jax.lax.map(lambda x: f("key"), jax.numpy.ones(2))
"""


@pytest.mark.ours
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_a_script_prints_the_users_lines(jax, mode):
    command = [sys.executable, "-c", SCRIPT.replace("NAME", jax.__name__)]
    out = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "FERRAX_TRACEBACK_FILTERING": mode}).stderr
    assert "KeyError: 'key'" in out and out.count('File "<string>"') == 3
    assert (out.count("File ") == 3, REMOVED in out) == ((True, True) if mode == "auto" else (False, False))
