"""Exported programs: in files and back, called, transformed, refused where damaged; symbolic sizes; and served from Rust."""

import collections
import functools
import importlib
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def export(jax):
    return importlib.import_module(f"{jax.__name__}.export")


@pytest.fixture(scope="module")
def jnp(jax):
    return jax.numpy


def spec(jax, *shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


X, W = np.arange(6, dtype=np.float32).reshape(2, 3) / 4, np.ones((3, 4), np.float32)


def model(jnp):
    return lambda x, w: {"y": jnp.sin(x) @ w, "rest": (w, x.sum())}


@pytest.fixture(scope="module")
def exported(jax, jnp, export):
    f = model(jnp)
    f.__name__ = "model"
    return export.export(jax.jit(f))(X, W)


# ---------------------------------------------------------------- what an exported function is


def test_attributes(jax, exported):
    e = exported
    assert e.fun_name == "model"
    assert repr(e.in_tree) == "PyTreeDef(((*, *), {}))"
    assert repr(e.out_tree) == "PyTreeDef({'rest': (*, *), 'y': *})"
    assert repr(e.in_avals) == "(ShapedArray(float32[2,3]), ShapedArray(float32[3,4]))"
    assert repr(e.out_avals) == "(ShapedArray(float32[3,4]), ShapedArray(float32[]), ShapedArray(float32[2,4]))"
    assert (e.in_shardings_hlo, e.out_shardings_hlo, e.nr_devices) == ((None, None), (None, None, None), 1)
    assert (e.platforms, e.ordered_effects, e.unordered_effects, e.disabled_safety_checks) == (("cpu",), (), (), ())
    assert e.module_kept_var_idx == (0, 1)
    assert e.uses_global_constants is False
    assert isinstance(e.mlir_module_serialized, bytes)
    assert str(e) == "Exported(fun_name=model, ...)"
    assert repr(e).startswith("Exported(fun_name='model', in_tree=PyTreeDef(((*, *), {})), in_avals=(ShapedArray(float32[2,3]), ")
    assert e == e and hash(e) == hash(e)
    assert e.has_vjp()
    assert e.in_shardings_jax(None) == (None, None)


def test_calling_convention(export, exported):
    low, high = export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version
    assert low <= exported.calling_convention_version <= high


def test_call_gives_the_bits_of_the_function(jax, jnp, exported):
    want = jax.jit(model(jnp))(X, W)
    got = exported.call(X, W)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)


def test_only_jitted_functions(jax, export):
    with pytest.raises(ValueError, match="Function to be exported must be the result of `jit` but is: <function"):
        export.export(lambda x: x)


@pytest.mark.ours
def test_wrong_arguments(jax, exported):
    for args, kwargs, message in [
        ((X,), {}, "must have the same pytree structure as when the function 'model' was exported"),
        ((X,), {"w": W}, "kwargs is a <class 'dict'> with 1 child in the invocation and a <class 'dict'> with 0 children? when exported"),
        ((X.T, W), {}, r"Shape mismatch for args\[0\].shape\[0\] \(expected same constant\): expected \(2, 3\) and called with \(3, 2\)"),
        ((X.astype(np.int32), W), {}, r"Dtype mismatch for args\[0\]: expected float32 and called with int32"),
        ((1.0, W), {}, r"Rank mismatch for args\[0\]: expected \(2, 3\) and called with \(\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            exported.call(*args, **kwargs)
    for bad in ("s", jax.ShapeDtypeStruct((2, 3), np.float32)):
        with pytest.raises(TypeError):
            exported.call(bad, W)


def test_structure_and_names_of_arguments(jax, export):
    f = jax.jit(lambda p, *, scale: {"out": p["w"] * scale})
    e = export.export(f)({"w": X}, scale=np.float32(2))
    assert np.array_equal(e.call({"w": X}, scale=np.float32(2))["out"], X * 2)
    with pytest.raises(ValueError, match=r"Rank mismatch for args\[0\]\['w'\]"):
        e.call({"w": X[0]}, scale=np.float32(2))
    with pytest.raises(ValueError, match=r"Dtype mismatch for kwargs\['scale'\]"):
        e.call({"w": X}, scale=np.int32(2))


def test_static_arguments_are_part_of_the_program(jax, export):
    e = export.export(jax.jit(lambda x, n: x * n, static_argnums=1))(X, 3)
    assert repr(e.in_tree) == "PyTreeDef(((*,), {}))"
    assert np.array_equal(e.call(X), X * 3)


def test_unused_arguments_are_named(jax, export):
    e = export.export(jax.jit(lambda x, y, z: x + z))(X, W, X)
    assert e.module_kept_var_idx == (0, 2)
    assert np.array_equal(e.call(X, W, X), X + X)


def test_weak_types(jax, export):
    e = export.export(jax.jit(lambda x: x + 1))(1.0)
    assert repr(e.in_avals) == "(ShapedArray(float32[], weak_type=True),)"
    assert e.call(np.float32(2)).weak_type


def test_captured_arrays_and_keys(jax, jnp, export):
    c = jnp.arange(3.0)
    e = export.export(jax.jit(lambda k, x: (jax.random.split(k), x + c)))(jax.random.key(0), c)
    keys, y = e.call(jax.random.key(1), c)
    assert np.array_equal(jax.random.key_data(keys), jax.random.key_data(jax.random.split(jax.random.key(1))))
    assert np.array_equal(y, c + c)


def test_calls_of_the_host_are_refused(jax, export):
    for f in (lambda x: jax.pure_callback(np.sin, spec(jax, 2, 3), x), lambda x: (jax.debug.print("{}", x), x)[1]):
        with pytest.raises(NotImplementedError, match="serialization of host_callbacks is not yet implemented"):
            export.export(jax.jit(f))(X)


# ---------------------------------------------------------------- transforms


def test_under_jit_and_inside_another(jax, jnp, export, exported):
    f = lambda x: exported.call(x, W)["rest"][1] * 2
    assert float(jax.jit(f)(X)) == float(X.sum() * 2)
    assert jax.eval_shape(f, spec(jax, 2, 3)).shape == ()
    outer = export.export(jax.jit(f))(X)
    assert float(outer.call(X)) == float(X.sum() * 2)


@pytest.mark.ours
def test_under_vmap(jax, exported):
    rows = np.stack([X, X + 1, X * 2])
    got = jax.vmap(lambda x: exported.call(x, W))(rows)["y"]
    assert np.array_equal(got, np.stack([exported.call(x, W)["y"] for x in rows]))


def test_reverse_mode(jax, jnp, exported):
    loss = lambda f: lambda x, w: (f(x, w)["y"] ** 2).sum()
    got = jax.grad(loss(exported.call), (0, 1))(X, W)
    want = jax.grad(loss(model(jnp)), (0, 1))(X, W)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    with pytest.raises(TypeError, match="forward-mode autodiff"):
        jax.jvp(lambda x: exported.call(x, W)["y"], (X,), (X,))


def test_the_derivative_as_a_program(jax, export):
    i = np.arange(3, dtype=np.int32)
    e = export.export(jax.jit(lambda x, i: (x * i, i)))(np.ones(3, np.float32), i)
    v = e.vjp()
    assert v.fun_name == "fun_vjp_jax"
    assert repr(v.in_tree) == "PyTreeDef(((*, *, *, *), {}))" and repr(v.out_tree) == "PyTreeDef((*, *))"
    assert [str(a) for a in v.in_avals] == ["float32[3]", "int32[3]", "float32[3]", "float0[3]"]
    assert [str(a) for a in v.out_avals] == ["float32[3]", "float0[3]"]
    dx, di = v.call(np.ones(3, np.float32), i, np.ones(3, np.float32), np.zeros(3, jax.dtypes.float0))
    assert np.array_equal(dx, [0, 1, 2])
    assert di.dtype == jax.dtypes.float0 and di.shape == (3,)


def test_rules_of_the_users_are_kept_by_the_derivative(jax, export):
    @jax.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda _, g: (g * 100,))
    g = jax.custom_jvp(lambda x: x * 3)
    g.defjvp(lambda p, t: (g(*p), t[0] * 7))
    e = export.export(jax.jit(lambda x: f(x) + g(x)))(X)
    assert np.array_equal(e.call(X), X * 5)
    back = export.deserialize(e.serialize(vjp_order=1))
    for program in (e, back):
        assert np.array_equal(jax.grad(lambda x: program.call(x).sum())(X), np.full_like(X, 107))


def test_orders_of_derivatives(jax, export):
    x = np.array([1.0, 2.0, 3.0], np.float32)
    e = export.export(jax.jit(lambda x: (x**3).sum()))(x)
    d = export.deserialize(e.serialize(vjp_order=2))
    second = lambda x: jax.grad(d.call)(x).sum()
    assert np.array_equal(jax.grad(second)(x), 6 * x)
    assert (d.has_vjp(), d.vjp().has_vjp(), d.vjp().vjp().has_vjp()) == (True, True, False)
    with pytest.raises(ValueError, match="No VJP is available"):
        jax.grad(lambda x: jax.grad(second)(x).sum())(x)
    with pytest.raises(ValueError, match="does not have vjps of high-enough order"):
        d.serialize(vjp_order=3)
    none = export.deserialize(e.serialize())
    assert not none.has_vjp()
    with pytest.raises(ValueError, match="No VJP is available"):
        none.vjp()


# ---------------------------------------------------------------- files


def programs(jax, jnp):
    """Functions that use what programs can hold, with arguments."""
    lax, x = jax.lax, np.linspace(0.1, 2, 6, dtype=np.float32).reshape(2, 3)
    return {
        "loops": (lambda x: lax.scan(lambda c, a: (c + a, lax.fori_loop(0, 3, lambda i, v: jnp.sin(v) + i, a)), x[0], x), (x,)),
        "while": (lambda x: lax.while_loop(lambda c: c[1] < 5, lambda c: (c[0] * 2, c[1] + 1), (x, 0)), (x,)),
        "cond": (lambda x: lax.cond(x[0, 0] > 1, jnp.cos, lambda x: x * x, x), (x,)),
        "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), (np.int32(2), x)),
        "inner jit": (lambda x: jax.jit(lambda y: y @ y.T)(x) + jax.jit(lambda y: y @ y.T)(x * 2), (x,)),
        "complex": (lambda x: jnp.fft.fft(x) * (1 + 2j), (x,)),
        "linalg": (lambda x: tuple(jnp.linalg.qr(x)), (x,)),
        "sort": (lambda x: (jnp.sort(x, 1), jnp.argsort(-x, 0), jnp.median(x)), (x,)),
        "gather": (lambda x: (x[:, np.array([2, 0])], x.at[0, 1].add(3), jnp.take(x, np.array([9]), mode="fill")), (x,)),
        "random": (lambda k: jax.random.normal(k, (4,)), (jax.random.key(3),)),
        "conv": (lambda x: jnp.convolve(x[0], x[1], mode="same"), (x,)),
        "windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "SAME"), (x,)),
        "dtypes": (lambda x: (x.astype(jnp.bfloat16), x.astype(jnp.int8), x > 1, jnp.float16(np.inf) * x.astype(jnp.float16)), (x,)),
        "checkpoint": (lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x), (x,)),
        "nans": (lambda x: (x * np.nan, jnp.where(x > 1, np.inf, -np.inf), x * -0.0), (x,)),
        "solve": (lambda x: jnp.linalg.solve(x @ x.T + 3 * jnp.eye(2), x), (x,)),
        "special": (lambda x: (jax.scipy.special.gammaincc(x, 2 * x), jax.nn.softmax(x)), (x,)),
        "custom root": (lambda x: lax.custom_root(lambda y: y * y - x, x, lambda f, g: jnp.sqrt(x), lambda g, y: y / g(jnp.ones_like(y))), (x,)),
    }


NAMES = ("loops", "while", "cond", "switch", "inner jit", "complex", "linalg", "sort", "gather", "random", "conv", "windows", "dtypes", "checkpoint", "nans", "solve",
         "special", "custom root")  # fmt: skip


@pytest.mark.ours
@pytest.mark.parametrize("name", NAMES)
def test_a_file_keeps_every_bit(jax, jnp, export, name):
    f, args = programs(jax, jnp)[name]
    f = jax.jit(f)
    e = export.deserialize(export.export(f)(*args).serialize())
    for a, b in zip(jax.tree.leaves(e.call(*args)), jax.tree.leaves(f(*args)), strict=True):
        assert a.dtype == b.dtype and a.weak_type == b.weak_type
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.ours
def test_a_file_keeps_the_attributes(jax, export, exported):
    blob = exported.serialize(vjp_order=1)
    assert isinstance(blob, bytearray)
    back = export.deserialize(blob)
    for name in ("fun_name", "in_tree", "in_avals", "out_tree", "out_avals", "platforms", "module_kept_var_idx", "calling_convention_version"):
        assert getattr(back, name) == getattr(exported, name), name
    assert back.serialize(vjp_order=1) == blob
    assert back == exported


def test_trees_in_files(jax, export):
    def trees(x):
        return [{"b": (x, None), "a": [x]}, (), collections.OrderedDict(z=x, y=x)]

    e = export.export(jax.jit(trees))(X)
    assert export.deserialize(e.serialize()).out_tree == e.out_tree
    for bad in ({1: X}, {(1, 2): X}):
        with pytest.raises(TypeError, match="Serialization is supported only for dictionaries with string keys. Found key"):
            export.export(jax.jit(lambda x, bad=bad: jax.tree.map(lambda y: x + y, bad)))(X).serialize()


def test_named_tuples_in_files(jax, export):
    Pair = collections.namedtuple("Pair", "a b")
    e = export.export(jax.jit(lambda p: Pair(p.b, p.a)))(Pair(X, W))
    with pytest.raises(ValueError, match="Cannot serialize PyTreeDef containing an unregistered type .*Pair.*register_namedtuple_serialization"):
        e.serialize()
    assert export.register_namedtuple_serialization(Pair, serialized_name="test_export.Pair") is Pair
    back = export.deserialize(e.serialize())
    out = back.call(Pair(X, W))
    assert type(out) is Pair and np.array_equal(out.a, W) and np.array_equal(out.b, X)
    with pytest.raises(ValueError, match="Duplicate serialization registration for type .*Previous registration was with serialized_name `test_export.Pair`"):
        export.register_namedtuple_serialization(Pair, serialized_name="other")
    Other = collections.namedtuple("Other", "a b")
    with pytest.raises(ValueError, match="Duplicate serialization registration for serialized_name `test_export.Pair`"):
        export.register_namedtuple_serialization(Other, serialized_name="test_export.Pair")
    with pytest.raises(ValueError, match=r"for types other than `collections.namedtuple`"):
        export.register_namedtuple_serialization(int, serialized_name="int")


def test_nodes_of_the_users_in_files(jax, export):
    class Box:
        def __init__(self, x, label):
            self.x, self.label = x, label

    register = lambda: export.register_pytree_node_serialization(
        Box, serialized_name="test_export.Box", serialize_auxdata=str.encode, deserialize_auxdata=bytes.decode
    )
    with pytest.raises(ValueError, match="you must call first`jax.tree_util.register_pytree_node`"):
        register()
    jax.tree_util.register_pytree_node(Box, lambda b: ((b.x,), b.label), lambda label, c: Box(*c, label))
    assert register() is Box
    e = export.export(jax.jit(lambda b: Box(b.x + 1, "out")))(Box(X, "in"))
    back = export.deserialize(e.serialize())
    out = back.call(Box(X, "in"))
    assert out.label == "out" and np.array_equal(out.x, X + 1)
    with pytest.raises(ValueError, match="structural differences"):
        back.call(Box(X, "elsewhere"))


@pytest.mark.ours
def test_an_unregistered_name_is_refused(jax, export):
    Gone = collections.namedtuple("Gone", "a")
    export.register_namedtuple_serialization(Gone, serialized_name="test_export.Gone")
    blob = export.export(jax.jit(lambda x: Gone(x)))(X).serialize()
    code = f"import {jax.__name__}.export as e\ne.deserialize(open({'BLOB'!r}, 'rb').read())"
    run = subprocess.run([sys.executable, "-c", code.replace("open('BLOB', 'rb').read()", repr(bytes(blob)))], capture_output=True, text=True, check=False)
    assert "Cannot deserialize a PyTreeDef containing an unregistered type `test_export.Gone`" in run.stderr


@pytest.mark.ours
def test_every_damaged_byte_is_refused(jax, export):
    blob = bytes(export.export(jax.jit(lambda x: {"y": x * 2 + 1}))(np.float32(1)).serialize())
    for i in range(len(blob)):
        for bad in (blob[:i], blob[:i] + bytes([blob[i] ^ 0x10]) + blob[i + 1 :]):
            with pytest.raises(ValueError, match="not a program exported by Ferrax, or a damaged one: "):
                export.deserialize(bad)
    with pytest.raises(ValueError, match="damaged"):
        export.deserialize(blob + b"\0")
    with pytest.raises(TypeError):
        export.deserialize(None)


@pytest.mark.ours
def test_a_later_version_is_refused(jax, export):
    blob = bytearray(export.export(jax.jit(lambda x: x))(X).serialize())
    blob[8] += 1
    with pytest.raises(ValueError, match="it is of version 2, and this is a reader of version 1"):
        export.deserialize(blob)


@pytest.mark.ours
def test_a_file_is_called_in_another_process(jax, exported, export, tmp_path):
    (tmp_path / "f").write_bytes(exported.serialize(vjp_order=1))
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "w.npy", W)
    code = (
        f"import {jax.__name__} as jax, numpy as np\nfrom {jax.__name__} import export\n"
        "e = export.deserialize(open('f', 'rb').read())\nx, w = np.load('x.npy'), np.load('w.npy')\n"
        "np.save('y.npy', e.call(x, w)['y'])\nnp.save('g.npy', jax.grad(lambda x: e.call(x, w)['y'].sum())(x))\n"
    )
    path = {"PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env={**os.environ, **path})
    assert np.array_equal(np.load(tmp_path / "y.npy"), exported.call(X, W)["y"])
    assert np.array_equal(np.load(tmp_path / "g.npy"), jax.grad(lambda x: exported.call(x, W)["y"].sum())(X))


# ---------------------------------------------------------------- platforms


def test_platforms(jax, jnp, export):
    f = jax.jit(jnp.sin)
    assert export.default_export_platform() == "cpu"
    e = export.export(f, platforms=["tpu"])(X)
    assert e.platforms == ("tpu",)
    with pytest.raises(ValueError, match=r"Function 'sin' was exported for platforms '\('tpu',\)' but it is used on '\('cpu',\)'."):
        e.call(X)
    both = export.export(f, platforms=["tpu", "cpu"])(X)
    assert both.uses_global_constants
    assert np.array_equal(both.call(X), np.asarray(f(X)))
    check = export.DisabledSafetyCheck.platform()
    loose = export.export(f, platforms=["tpu"], disabled_checks=[check])(X)
    assert loose.disabled_safety_checks == (check,)
    assert np.array_equal(export.deserialize(loose.serialize()).call(X), np.asarray(f(X)))


def test_a_program_for_each_platform(jax, jnp, export):
    f = jax.jit(lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos))
    e = export.deserialize(export.export(f, platforms=["tpu", "cpu"])(X).serialize(vjp_order=1))
    assert np.array_equal(e.call(X), np.asarray(jnp.sin(X)))
    np.testing.assert_allclose(jax.grad(lambda x: e.call(x).sum())(X), np.cos(X), rtol=1e-6)
    other = export.export(f, platforms=["tpu"], disabled_checks=[export.DisabledSafetyCheck.platform()])(X)
    assert np.array_equal(other.call(X), np.asarray(jnp.cos(X)))


def test_safety_checks(export):
    check = export.DisabledSafetyCheck
    assert (str(check.platform()), repr(check.custom_call("f"))) == ("platform", "custom_call:f")
    assert (check.platform().is_custom_call(), check.custom_call("f").is_custom_call()) == (None, "f")
    assert len({check.platform(), check.platform(), check.custom_call("f")}) == 2


# ---------------------------------------------------------------- symbolic sizes


@pytest.fixture
def symbolic(jax, export):
    """`symbolic(f, "b,3", ..)`: f exported for arguments of these shapes, after a file."""

    def make(f, *shapes, constraints=(), keep=False):
        scope = export.SymbolicScope(constraints)
        specs = [jax.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), np.float32) for s in shapes]
        e = export.export(jax.jit(f))(*specs)
        return e if keep else export.deserialize(e.serialize(vjp_order=1))

    return make


def test_symbolic_expressions(export):
    b, c = export.symbolic_shape("b, c")
    cases = {
        "b + 1": 1 + b, "- c + b": b - c, "b*c": c * b, "b^2": b * b, "floordiv(b, 2)": b // 2, "mod(b, 2)": b % 2, "b": b * 2 // 2, "- b": -b, "b + 2": (2 * b + 4) // 2,
        "3*b*c + b^2 - 2": b * b + 3 * b * c - 2, "floordiv(4*b, 3)": 4 * b // 3, "floordiv(b + 3, 2) - 1": (b + 3) // 2 - 1, "b^3": b**3, "c": b * c // b,
    }  # fmt: skip
    for text, e in cases.items():
        assert repr(e) == text
        assert export.is_symbolic_dim(e)
    assert (b - b, b * 0, (b * 2) % 2, b % 1, b // b) == (0, 0, 0, 0, 1)
    assert not any(map(export.is_symbolic_dim, (3, b - b, "b")))
    assert divmod(b, 2) == (b // 2, b % 2)
    assert b + c == c + b and hash(b + c) == hash(c + b) and b != c and b != 3 and b in (1, b)


def test_symbolic_comparisons(jax, export):
    b, c = export.symbolic_shape("b, c")
    for holds in (b >= 1, b > 0, b + 1 > b, b >= b, b - 1 >= 0, b // 2 <= b, b % 3 < 3, b * c - 1 >= 0, not b <= 0, not b < b):
        assert holds is True
    for condition in (lambda: b > 1, lambda: b < c, lambda: b >= 2 * c, lambda: max(b, c), lambda: int(b)):
        with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="Symbolic dimension"):
            condition()
    assert repr(jax.core.max_dim(b, c)) == "max(b, c)" and jax.core.max_dim(1, b) == b and jax.core.min_dim(3, 4) == 3


def test_constraints_decide_comparisons(jax, export):
    d, e = export.symbolic_shape("d, e", constraints=["d >= e", "e <= 5", "mod(d, 2) == 0"])
    assert d >= e and d - e >= 0 and e <= 6 and not e > 5 and d + 1 > e and 2 * d >= e + 1 and d % 2 == 0
    with pytest.raises(jax.errors.InconclusiveDimensionOperation):
        d > e  # noqa: B015
    for bad, message in [(["a"], "must contain one of"), ("a >= 1", "should be a sequence of strings"), (["3 >= 4"], "Unsatisfiable explicit constraint")]:
        with pytest.raises(ValueError, match=message):
            export.SymbolicScope(bad)


def test_symbolic_shapes_from_text(export):
    shape = lambda *a, **k: repr(export.symbolic_shape(*a, **k))
    assert shape("b, 2*c") == "(b, 2*c)" and shape("(b, 4)") == "(b, 4)" and shape("") == "()" and shape("b,") == "(b,)"
    assert shape("a + 2*b - 3, floordiv(a, 2), max(a, b), min(a, 3), a^2") == "(2*b + a - 3, floordiv(a, 2), max(a, b), min(a, 3), a^2)"
    assert shape("b, ...", like=(1, 2, 3)) == "(b, 2, 3)" and shape("b, _, 4", like=(1, 2, 4)) == "(b, 2, 4)" and shape(None, like=(1, 2)) == "(1, 2)"
    for text, message in [
        ("b, _", "no 'like' shape"),
        ("b +", "syntax error in symbolic shape 'b \\+' in dimension 0"),
        ("b $", "syntax error"),
        ("a b", "syntax error"),
    ]:
        with pytest.raises(ValueError, match=message):
            export.symbolic_shape(text)
    with pytest.raises(ValueError, match=r"different size 4 for known dimension; like=\(1, 5\)"):
        export.symbolic_shape("b, 4", like=(1, 5))
    with pytest.raises(ValueError, match="Cannot specify both a `scope` and `constraints`"):
        export.symbolic_shape("a", constraints=["a >= 1"], scope=export.SymbolicScope())


def test_symbolic_specs_of_arguments(export):
    args = (np.ones((2, 3), np.float32), {"a": np.ones(3, np.float32)})
    specs = export.symbolic_args_specs(args, ("b, ...", {"a": None}))
    assert repr(specs) == "(ShapeDtypeStruct(shape=(b, 3), dtype=float32), {'a': ShapeDtypeStruct(shape=(3,), dtype=float32)})"
    both = export.symbolic_args_specs(args, "b, ...", constraints=["b >= 3"])
    assert both[0].shape[0] == both[1]["a"].shape[0]


def test_scopes_do_not_mix(jax, export):
    one, other = (jax.ShapeDtypeStruct(export.symbolic_shape("b"), np.float32) for _ in range(2))
    with pytest.raises(ValueError, match=r"(?s)Invalid mixing of symbolic scopes when exporting.*from args\[0\].*found for 'b' \(args\[1\]\)"):
        export.export(jax.jit(lambda x, y: x + y))(one, other)
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        one.shape[0] + other.shape[0]


POLYMORPHIC = {
    "sizes": (lambda jax, x: (x.reshape(-1), x.sum(0), x.mean(), x.shape[0] * 2), ["b,2*c"], "float32[2*b*c] float32[2*c] float32[] int32[]"),
    "mlp": (lambda jax, x, w: jax.nn.log_softmax(jax.nn.gelu(x @ w) @ w), ["b,4", "4,4"], "float32[b,4]"),
    "attention": (
        lambda jax, q: jax.nn.softmax(jax.numpy.where(jax.numpy.tri(q.shape[1]) > 0, q @ q.mT / jax.numpy.sqrt(q.shape[2]), -1e9)) @ q,
        ["b,t,3"],
        "float32[b,t,3]",
    ),
    "convolution": (
        lambda jax, x: jax.lax.conv_general_dilated(x, jax.numpy.ones((4, 3, 3, 3)), (2, 2), "SAME").mean((2, 3)),
        ["b,3,h,w"],
        "float32[b,4]",
    ),
    "scan": (lambda jax, x: jax.lax.scan(lambda c, a: (c + a.sum(), c * a), 0.0, x), ["t,b"], "float32[] float32[t,b]"),
    "concatenate": (lambda jax, x: jax.numpy.concatenate([x, x, jax.numpy.ones(3)]), ["b"], "float32[2*b + 3]"),
    "slices": (lambda jax, x: (x[1:], x[:-1], x[::2], x[: x.shape[0] // 2]), ["b"], "float32[b - 1] float32[b - 1] float32[floordiv(b + 1, 2)] float32[floordiv(b, 2)]"),
    "sort": (lambda jax, x: (jax.numpy.sort(x), jax.numpy.argsort(x), jax.numpy.cumsum(x), jax.numpy.flip(x)), ["t"], "float32[t] int32[t] float32[t] float32[t]"),
    "random": (lambda jax, x: x + jax.random.normal(jax.random.key(0), x.shape), ["t,3"], "float32[t,3]"),
    "reshape": (lambda jax, x: (x.reshape(x.shape[0], -1), x.reshape(3, -1, x.shape[0])), ["b,c,3"], "float32[b,3*c] float32[3,c,b]"),
    "pairs": (lambda jax, x: (x[:, None] - x[None], jax.numpy.outer(x, x)), ["b"], "float32[b,b] float32[b,b]"),
    "range": (lambda jax, x: jax.numpy.arange(x.shape[0]) * x + jax.lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), ["b"], "float32[b]"),
    "windows": (lambda jax, x: jax.numpy.pad(jax.numpy.tile(x, (2, 1)), ((1, 2), (0, 0))), ["t,3"], "float32[2*t + 3,3]"),
    "gradient": (lambda jax, x: jax.grad(lambda x: (x**3).mean())(x), ["b,3"], "float32[b,3]"),
    "hessian": (lambda jax, x: jax.hessian(lambda x: (x**3).sum() * x[0])(x), ["b"], "float32[b,b]"),
    "lanes": (lambda jax, x: jax.vmap(lambda a: a @ a)(x), ["b,c,c"], "float32[b,c,c]"),
    "shapes": (lambda jax, x: (jax.numpy.asarray(x.shape), jax.numpy.array([[x.shape[0], 2], [3, x.shape[1] * 2]]) * 1.5), ["b,c"], "int32[2] float32[2,2]"),
    "mixed": (lambda jax, x: jax.numpy.array([x.shape[0], x[0], 1.5]), ["b"], "float32[3]"),
    "triangles": (lambda jax, x: (jax.numpy.tril_indices(x.shape[0]), x[jax.numpy.triu_indices(x.shape[0])]), ["b,b"],
                  "int32[floordiv(b^2 + b, 2)] int32[floordiv(b^2 + b, 2)] float32[floordiv(b^2 + b, 2)]"),
    "dot_product_attention": (lambda jax, q: jax.nn.dot_product_attention(q, q, q), ["b,t,3,4"], "float32[b,t,3,4]"),
    "causal": (lambda jax, q: jax.nn.dot_product_attention(q, q, q, is_causal=True, local_window_size=(2, 1)), ["b,t,3,4"], "float32[b,t,3,4]"),
    "made": (
        lambda jax, x: (jax.numpy.eye(x.shape[0]), jax.numpy.linspace(0, 1, x.shape[0]), jax.numpy.zeros(x.shape).at[0].set(1.0), jax.numpy.full(x.shape[::-1], 7),
                        jax.numpy.broadcast_to(x[0], x.shape), jax.numpy.indices(x.shape)[1]),
        ["b,c"], "float32[b,b] float32[b] float32[b,c] int32[c,b] float32[b,c] int32[b,c]",
    ),
    "extremes": (lambda jax, x: jax.numpy.ones(jax.core.max_dim(x.shape[0], 5)) * 2, ["b"], "float32[max(b, 5)]"),
}  # fmt: skip


@pytest.mark.ours
@pytest.mark.parametrize("name", POLYMORPHIC)
def test_one_program_for_all_sizes(jax, symbolic, name):
    f, shapes, outs = POLYMORPHIC[name]
    f = functools.partial(f, jax)
    e = symbolic(f, *shapes)
    assert " ".join(map(str, e.out_avals)).replace("~", "") == outs
    for k, sizes in enumerate([(4, 5, 6, 7), (7, 3, 9, 8), (2, 2, 5, 4), (30, 17, 8, 12)]):
        names = dict(zip("bcthw", (*sizes, sizes[0]), strict=False))
        args = [np.random.default_rng(k).normal(size=eval(f"({s},)", {}, names)).astype(np.float32) for s in shapes]
        got, want = jax.tree.leaves(e.call(*args)), jax.tree.leaves(jax.jit(f)(*args))
        for a, b in zip(got, want, strict=True):
            assert a.shape == b.shape and np.array_equal(a, b), (name, sizes)


def test_derivatives_at_symbolic_sizes(jax, symbolic):
    e = symbolic(lambda x, w: jax.numpy.tanh(x @ w).mean(), "b,3", "3,4")
    assert [str(a) for a in e.vjp().in_avals] == ["float32[b,3]", "float32[3,4]", "float32[]"]
    for b in (1, 2, 9):
        x = np.linspace(-1, 1, 3 * b, dtype=np.float32).reshape(b, 3)
        want = jax.grad(lambda w, x=x: jax.numpy.tanh(x @ w).mean())(W)
        np.testing.assert_allclose(jax.grad(e.call, 1)(x, W), want, rtol=1e-5, atol=1e-7)


def test_sizes_are_bound_by_the_call(symbolic):
    e = symbolic(lambda x, y: x @ y, "b,2*c", "2*c,4")
    ones = lambda *s: np.ones(s, np.float32)
    assert e.call(ones(3, 4), ones(4, 4)).shape == (3, 4)
    head = "Input shapes do not match the polymorphic shapes specification. "
    for args, message in [
        ((ones(3, 5), ones(5, 4)), head + "Division had remainder 1 when computing the value of 'c'. "),
        ((ones(0, 4), ones(4, 4)), head + "Expected value >= 1 for dimension variable 'b'. "),
        ((ones(3, 4), ones(6, 4)), head + r"Found inconsistency between dimension size args\[1\].shape\[0\] \(= 6\) and the specification '2\*c' \(= 4\). "),
        ((ones(3), ones(4, 4)), r"Rank mismatch for args\[0\]: expected \(b, 2\*c\) and called with \(3,\)"),
        ((ones(3, 4), ones(4, 5)), r"Shape mismatch for args\[1\].shape\[1\] \(expected same constant\): expected \(2\*c, 4\) and called with \(4, 5\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            e.call(*args)


@pytest.mark.ours
def test_constraints_are_checked_at_the_call(symbolic):
    e = symbolic(lambda x: x[:4], "b", constraints=["b>=4"])
    assert np.array_equal(e.call(np.ones(9, np.float32)), np.ones(4))
    message = "Input shapes do not match the symbolic shape constraint b>=4. Expected 'b - 4' to be greater or equal to 0, but found -1."
    with pytest.raises(ValueError, match=message):
        e.call(np.ones(3, np.float32))


@pytest.mark.ours
def test_assumptions_of_tracing_are_checked_at_the_call(symbolic):
    e = symbolic(lambda x: x[:3], "b")
    assert e.call(np.ones(3, np.float32)).shape == (3,)
    with pytest.raises(ValueError, match="symbolic shape constraint b - 3 >= 0"):
        e.call(np.ones(2, np.float32))


def test_sizes_that_cannot_be_solved_for(symbolic):
    for shape in ("b*c", "b + c"):
        with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables \{.*\}. We can only solve linear uni-variate constraints"):
            symbolic(lambda x: x, shape).call(np.ones(3, np.float32))


def test_python_cannot_depend_on_a_symbolic_size(jax, symbolic):
    for f in (
        lambda x: x if x.shape[0] > 4 else 2 * x,
        lambda x: x * int(x.shape[0]),
        lambda x: sum(x[i] for i in range(x.shape[0])),
        lambda x: sum(x),
        lambda x: x * np.ones(x.shape),
        lambda x: x / np.sqrt(x.shape[0]),
    ):
        with pytest.raises((jax.errors.InconclusiveDimensionOperation, TypeError)):
            symbolic(f, "b")


def test_errors_name_symbolic_sizes(symbolic):
    with pytest.raises(TypeError, match=r"add got incompatible shapes for broadcasting: \(b,\), \(c,\)"):
        symbolic(lambda x, y: x + y, "b", "c")
    with pytest.raises(TypeError, match=r"add got incompatible shapes for broadcasting: \(b,\), \(3,\)"):
        symbolic(lambda x, y: x + y, "b", "3")


def test_symbolic_programs_inside_others(jax, symbolic):
    inner = symbolic(lambda x: x.sum(0), "b,3")
    outer = symbolic(lambda y: inner.call(y.T) * 2, "3,2*k")
    assert np.array_equal(outer.call(np.ones((3, 4), np.float32)), np.full(3, 8))
    assert float(jax.jit(lambda x: inner.call(x)[0])(np.ones((5, 3), np.float32))) == 5
    with pytest.raises(ValueError, match=r"Shape mismatch for args\[0\].shape\[1\]"):
        symbolic(lambda y: inner.call(y.T), "4,2*k")


# ---------------------------------------------------------------- without Python


@pytest.mark.ours
def test_a_rust_program_serves_pythons_bits(tmp_path):
    serve = ROOT / "target" / "ci" / "examples" / "serve"
    if not serve.exists():
        pytest.skip("cargo build --profile ci -p ferrax --example serve makes what this runs")
    python = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, ROOT / "examples" / "serve.py", tmp_path, "--steps", "20"], check=True, env=python, capture_output=True)
    files = [tmp_path / name for name in ("model.ferrax", "points.f32", "served.f32")]
    run = subprocess.run([serve, *files], check=True, capture_output=True, text=True)
    assert run.stdout.startswith("classify: 200 rows")
    assert files[2].read_bytes() == (tmp_path / "logits.f32").read_bytes()


@pytest.mark.ours
def test_devices_and_shardings(child):
    """An export says on how many devices it is laid out and how arguments and results lie on a mesh; so does its file."""
    code = """
    from ferrax import export, lax, numpy as jnp
    from ferrax.sharding import AxisType, NamedSharding, PartitionSpec as P
    one, two = (jax.make_mesh(n, a, axis_types=(AxisType.Auto,) * len(n)) for n, a in (((8,), ("x",)), ((4, 2), ("a", "b"))))
    cut, whole, both = NamedSharding(one, P("x")), NamedSharding(one, P()), NamedSharding(two, P(("a", "b")))
    spec = lambda s=None: jax.ShapeDtypeStruct((8,), "float32", sharding=s)
    f = lambda x: x + 1
    constrained = lambda x: lax.with_sharding_constraint(x + 1, cut)
    mapped = jax.shard_map(f, mesh=one, in_specs=P("x"), out_specs=P("x"))
    cases = [(jax.jit(f, in_shardings=cut, out_shardings=whole), spec(), 8, cut, whole), (jax.jit(f, in_shardings=whole), spec(), 8, whole, None),
             (jax.jit(f, out_shardings=cut), spec(), 8, None, cut), (jax.jit(f), spec(cut), 8, cut, None),
             (jax.jit(f), jax.device_put(jnp.arange(8.0), cut), 8, cut, None), (jax.jit(f), spec(), 1, None, None),
             (jax.jit(constrained), spec(), 8, None, None), (jax.jit(mapped), spec(), 8, None, None), (jax.jit(lambda x: mapped(x)), spec(), 8, None, None),
             (jax.jit(f, in_shardings=both), spec(), 8, both, None)]
    for jitted, arg, devices, ins, outs in cases:
        e = export.export(jitted)(arg)
        for e in (e, export.deserialize(e.serialize())):
            mesh = two if ins is both else one
            assert (e.nr_devices, e.in_shardings_jax(mesh), e.out_shardings_jax(mesh)) == (devices, (ins,), (outs,)), e
            assert e.call(jnp.arange(8.0)).tolist() == list(range(1, 9))
    e = export.export(jax.jit(lambda t, k: (t["a"], k), in_shardings=({"a": cut, "b": whole}, None)))({"a": spec(), "b": spec()}, spec())
    assert e.in_shardings_jax(one) == (cut, whole, None) and e.out_shardings_jax(one) == (None, None)
    try:
        export.export(cases[0][0])(spec()).in_shardings_jax(two)
    except ValueError as e:
        print("new mesh" in str(e))
    """
    assert child(code, NUM_CPU_DEVICES="8") == "True\n"
