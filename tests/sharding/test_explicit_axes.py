"""Types that say how arrays lie along explicit axes: JAX's types and refusals, one device's values, and what transforms make of them."""

import pathlib
import textwrap

import pytest

TABLE = pathlib.Path(__file__).parents[1] / "golden" / "typed_shardings.txt"

# how the outcome may differ from JAX's: its beginning there, and here
LOOSER = [
    ("Use `.at[...].get(out_sharding=)`", "slicing on sharded dims"),  # a static index is a slice
]

PROGRAM = """
import sys
sys.path.insert(0, {here!r})
import numpy as np
import typed_programs as t
env = t.environment({library!r})
jax, jnp = env["jax"], env["jnp"]
mesh = jax.make_mesh(tuple(t.AXES.values()), tuple(t.AXES))
"""


@pytest.fixture
def on_mesh(forked_child, jax):
    """Runs code with eight CPU devices and what typed_programs.py offers."""
    before = PROGRAM.format(here=str(pathlib.Path(__file__).parents[1]), library=jax.__name__)
    return lambda code: forked_child(before + textwrap.dedent(code), NUM_CPU_DEVICES="8", timeout=600)


@pytest.mark.ours
def test_types_and_refusals_are_those_of_the_table(on_mesh):
    on_mesh(f"""
        looser, wrong = {LOOSER!r}, []
        for line in open({str(TABLE)!r}):
            text, wanted = line.rstrip("\\n").split(" => ")
            got = t.described(t.outcome(text, env, mesh), env)
            alike = lambda w, g: w == g or any(a in w and b in g and w.split(":")[0] == g.split(":")[0] for a, b in looser)
            if not alike(wanted, got):
                wrong.append(f"{{text}}\\n    wanted {{wanted}}\\n    got    {{got}}")
        assert not wrong, f"{{len(wrong)}} differ\\n" + "\\n".join(wrong)
    """)


@pytest.mark.ours
def test_values_are_one_devices(on_mesh):
    on_mesh(f"""
        for line in open({str(TABLE)!r}):
            text, wanted = line.rstrip("\\n").split(" => ")
            if "Error:" in wanted:
                continue
            got, whole = t.outcome(text, env, mesh), eval(text.split(" | ")[1], {{**env, **dict(zip("ab", t.operands(text, env, None)))}}) if "P(" not in text else None
            if whole is not None:
                np.testing.assert_allclose(np.asarray(got), np.asarray(whole), rtol=2e-5, atol=2e-5, err_msg=text)
            if hasattr(got, "sharding") and got.sharding.num_devices == 8:
                names = [*[p or "" for p in got.sharding.spec], *[""] * (got.ndim - len(got.sharding.spec))]
                dims = ",".join(f"{{n}}{{'@' + p if isinstance(p, str) and p else '@(' + ','.join(p) + ')' if p else ''}}" for n, p in zip(got.shape, names))
                assert str(jax.typeof(got)) == f"{{got.dtype}}[{{dims}}]", (text, got.sharding, jax.typeof(got))
    """)


@pytest.mark.ours
def test_programs_and_their_cotangents(on_mesh):
    on_mesh(
        """
        P = env["P"]
        x = jax.device_put(np.arange(16.0, dtype=np.float32).reshape(8, 2), jax.NamedSharding(mesh, P("x", None)))
        w = jax.device_put(np.ones((2, 4), np.float32), jax.NamedSharding(mesh, P(None, "y")))
        assert " ".join(str(jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(x)).split()).startswith("{ lambda ; a:f32[8@x,2]. let b:f32[8@x,2] = sin a")
        assert jax.typeof(x).sharding.spec == P("x", None) and jax.typeof(x).sharding.mesh == mesh.abstract_mesh
        assert str(jax.ShapeDtypeStruct((8, 2), "float32", sharding=x.sharding).aval) == "float32[8@x,2]"
        with jax.set_mesh(mesh):
            loss = lambda w: (jnp.sin(x @ w) ** 2).sum()
            for f in (jax.grad(loss), jax.jit(jax.grad(loss)), jax.grad(jax.jit(loss)), jax.grad(jax.checkpoint(loss))):
                g = f(w)
                assert str(jax.typeof(g)) == "float32[2,4@y]" and g.sharding == w.sharding, (jax.typeof(g), g.sharding)
                np.testing.assert_allclose(g, jax.grad(lambda w: (jnp.sin(np.asarray(x) @ w) ** 2).sum())(np.asarray(w)), rtol=1e-4)
            seen = []
            look = lambda v: (seen.append(str(jax.typeof(v))), v)[1]
            jax.jit(look)(x), jax.grad(lambda v: look(v).sum())(x), jax.vmap(look)(x), jax.lax.scan(lambda c, r: (c, look(r)), 0.0, x.T)
            assert seen == ["float32[8@x,2]", "float32[8@x,2]", "float32[2]", "float32[8@x]"], seen
            y = jnp.zeros((8, 4), out_sharding=P("x", "y"))
            assert str(jax.typeof(y)) == "float32[8@x,4@y]"
            k = jax.random.normal(jax.random.key(0), (8, 4), out_sharding=P("x"))
            assert str(jax.typeof(k)) == "float32[8@x,4]" and (np.asarray(k) == np.asarray(jax.random.normal(jax.random.key(0), (8, 4)))).all()
            gram = jax.sharding.auto_axes(lambda v: v.T @ v, out_sharding=P("y", None))
            assert str(jax.typeof(gram(x))) == "float32[2@y,2]" and str(jax.typeof(jax.jit(gram)(x))) == "float32[2@y,2]"
            np.testing.assert_allclose(gram(x), np.asarray(x).T @ np.asarray(x))
    """
    )


@pytest.mark.ours
def test_out_sharding_is_obeyed(on_mesh):
    on_mesh("""
        P, lax, k = env["P"], env["lax"], jax.random.key(1)
        m = jnp.arange(32.0).reshape(8, 4)
        made = {
            "zeros": lambda **o: jnp.zeros((8, 4), **o), "ones": lambda **o: jnp.ones((8, 4), **o), "full": lambda **o: jnp.full((8, 4), 2.0, **o),
            "empty": lambda **o: jnp.empty((8, 4), **o), "zeros_like": lambda **o: jnp.zeros_like(m, **o), "full_like": lambda **o: jnp.full_like(m, 3, **o),
            "array": lambda **o: jnp.array(m, **o), "asarray": lambda **o: jnp.asarray(m, **o), "reshape": lambda **o: jnp.reshape(m.reshape(-1), (8, 4), **o),
            "method": lambda **o: m.reshape(4, 8).reshape(8, 4, **o), "broadcast_to": lambda **o: jnp.broadcast_to(m[0], (8, 4), **o),
            "iota": lambda **o: lax.broadcasted_iota("float32", (8, 4), 0, **o), "broadcast": lambda **o: lax.broadcast(m[0], (8,), **o),
            "matmul": lambda **o: jnp.matmul(m, jnp.eye(4), **o), "dot": lambda **o: jnp.dot(m, jnp.eye(4), **o), "einsum": lambda **o: jnp.einsum("ij,jk->ik", m, jnp.eye(4), **o),
            "tensordot": lambda **o: jnp.tensordot(m, jnp.eye(4), 1, **o), "take": lambda **o: m.at[jnp.arange(8)].get(**o), "set": lambda **o: m.at[0].set(1.0, **o),
            "add": lambda **o: m.at[0].add(1.0, **o), "repeat": lambda **o: jnp.repeat(m[:4], 2, axis=0, total_repeat_length=8, **o),
            **{n: (lambda f: lambda **o: f(k, shape=(8, 4), **o))(getattr(jax.random, n)) for n in ("normal", "uniform", "gumbel", "laplace", "bits", "exponential")},
            "randint": lambda **o: jax.random.randint(k, (8, 4), 0, 9, **o), "bernoulli": lambda **o: jax.random.bernoulli(k, 0.5, (8, 4), **o),
            "gamma": lambda **o: jax.random.gamma(k, 2.0, (8, 4), **o),
        }
        with jax.set_mesh(mesh):
            for name, f in made.items():
                for call in (f, jax.jit(f, static_argnames="out_sharding")):
                    for place in (P("x", None), jax.NamedSharding(mesh, P(None, "y"))):
                        got = call(out_sharding=place)
                        spec = place if isinstance(place, P) else place.spec
                        assert jax.typeof(got).sharding.spec == spec and got.sharding.spec == spec, (name, got.sharding)
                        assert name == "empty" or (np.asarray(got) == np.asarray(f())).all(), name
    """)


def test_zero_derivatives_have_their_types(forked_child):
    """Those of arguments that are not used lie as the arguments do; along axes along which an argument is reduced, as terms of a sum. JAX's types."""
    forked_child(
        """
        P, NamedSharding = jax.P, jax.sharding.NamedSharding
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
        with jax.set_mesh(mesh):
            values = {
                "float32[4]{U:x}": jax.device_put(jnp.arange(4.0), P(None, reduced={"x"})),
                "float32[4@x]": jax.device_put(jnp.arange(4.0), P("x")),
                "float32[4,2@x]": jax.device_put(jnp.ones((4, 2)), P(None, "x")),
                "float32[3]": jnp.ones(3),
                "float32[]": jnp.float32(1),
            }
            other = jnp.ones(2)
            f = lambda x, y: (y * 2).sum()
            ways = {
                "grad": jax.grad(f),
                "grad in jit": jax.jit(jax.grad(f)),
                "vjp": lambda x, y: jax.vjp(f, x, y)[1](jnp.float32(1))[0],
                "vjp in jit": jax.jit(lambda x, y: jax.vjp(f, x, y)[1](jnp.float32(1))[0]),
            }
            for name, x in values.items():
                for way, run in ways.items():
                    zero = run(x, other)
                    assert jax.typeof(zero).str_short() == name, (way, name, jax.typeof(zero))
                    assert not np.asarray(jax.reshard(zero, P())).any()
                if "U" not in name:
                    y, dy = jax.jvp(jax.lax.stop_gradient, (x,), (x,))
                    assert jax.typeof(dy) == jax.typeof(x) and not np.asarray(dy).any()
        """,
        NUM_CPU_DEVICES="2",
    )


@pytest.mark.ours
def test_auto_axes_outside_of_programs_gives_arrays(forked_child):
    """Called eagerly, the function may ask arrays for their shardings; axes of the mesh are Auto inside, Explicit outside."""
    code = """
    from ferrax.sharding import AxisType, PartitionSpec as P, auto_axes, explicit_axes
    from ferrax.experimental.layout import Format, Layout
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    jax.set_mesh(mesh)
    x = jax.device_put(jnp.arange(8.0), P("x"))
    seen = []
    note = lambda x: (seen.append((x.sharding.spec, x.sharding.mesh.axis_types[0].name, str(jax.typeof(x)))), x)[1]
    y = auto_axes(lambda x: note(note(x) * 2), out_sharding=P("x"))(x)
    assert y.tolist() == (2 * np.arange(8.0)).tolist() and str(jax.typeof(y)) == "float32[8@x]" and y.sharding.mesh == mesh
    z = auto_axes(lambda x: explicit_axes(note, in_sharding=P("x"))(x), out_sharding=P())(x)
    assert seen == [(P("x"), "Auto", "float32[8]")] * 2 + [(P("x"), "Explicit", "float32[8@x]")] and z.tolist() == list(range(8))
    a, b = jax.device_put(jnp.ones((8, 8)), P("x", None)), jax.device_put(jnp.ones((8, 8)), P(None, "x"))
    product, total = auto_axes(lambda a, b: (a.T @ b, a.sum()), out_sharding=(P("x", None), P()))(a, b)
    assert str(jax.typeof(product)) == "float32[8@x,8]" and total == 64
    print(type(P()).__name__, Layout.AUTO, Format(Layout.AUTO))
    """
    assert forked_child(code, NUM_CPU_DEVICES="8") == "P AUTO Format(layout=AUTO, sharding=None)\n"
