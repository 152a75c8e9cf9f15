"""What types say of sums in the body of a `shard_map`: terms (`unreduced`), what was made whole of them (`reduced`), casts and collectives between these, and
their derivatives."""

import textwrap

import pytest

pytestmark = pytest.mark.ours


@pytest.fixture
def on_mesh(forked_child, jax):
    """Runs code with eight CPU devices, a mesh of explicit axes in use."""
    return lambda code: forked_child(SETUP.format(library=jax.__name__) + textwrap.dedent(code), NUM_CPU_DEVICES="8")


SETUP = """
from {library}.sharding import NamedSharding
from {library} import lax
P = jax.P
mesh = jax.make_mesh((2, 4), ("x", "y"))
jax.set_mesh(mesh)
X = np.sin(np.arange(128, dtype=np.float32)).reshape(8, 16)
put = lambda a, *spec, **sums: jax.device_put(a, P(*spec, **sums))
whole = lambda a: np.asarray(jax.reshard(a, P(*[None] * a.ndim)))
near = lambda a, b: np.testing.assert_allclose(whole(a), np.asarray(b), rtol=1e-5, atol=1e-5)
def both(f): return f, jax.jit(f)
def refused(error, words, f):
    for run in (f, lambda: jax.jit(lambda: f())()):
        try: run()
        except error as e: assert words in str(e), e
        else: raise AssertionError(words)
def states(v, names=("x", "y")):
    mat = v.aval.mat
    return "".join("V" if n in mat.varying else "U" if n in mat.unreduced else "R" if n in mat.reduced else "-" for n in names)
def seen(found, v):
    found.append(states(v))
    return v
"""


def test_casts_and_types(on_mesh):
    on_mesh("""
    a, found = put(X, "x", "y"), []
    def body(a):
        seen(found, a)
        u = seen(found, lax.pcast(a, "y", to="unreduced"))
        seen(found, lax.psum(u, "y"))
        seen(found, lax.psum_scatter(u, "y", tiled=True))
        r = seen(found, lax.all_gather(a, "y", tiled=True, to="reduced"))
        seen(found, lax.pcast(r, "y", to="varying"))
        i = seen(found, lax.psum(a, ("x", "y")))
        seen(found, lax.pcast(i, ("x", "y"), to="reduced"))
        seen(found, u + u), seen(found, u.reshape(-1).T), seen(found, r[:4] * a)
        assert str(u.aval) == "float32[4,4]{V:x, U:y}" and u.mat.unreduced == {"y"} and u.mat.invarying(jax.sharding.get_abstract_mesh()) == set()
        return u
    for run in both(jax.shard_map(body, out_specs=P("x", None, unreduced={"y"}))):
        found.clear()
        y = run(a)
        assert found == ["VV", "VU", "V-", "VV", "VR", "VV", "--", "RR", "VU", "VU", "VV"], found
        assert y.sharding == NamedSharding(mesh, P("x", None, unreduced={"y"}))
        near(y, X.reshape(8, 4, 4).sum(1))
        assert jax.typeof(y).sharding.spec.unreduced == {"y"}
    """)


def test_operands_and_results_that_are_sums(on_mesh):
    """A sum goes in and out as it lies: nothing is summed at the border, and the types must agree."""
    on_mesh("""
    terms = jax.jit(lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"y"})))(put(X, None, "y"), put(X.T, "y", None))
    same = jax.shard_map(lambda u: u + u, in_specs=P(unreduced={"y"}), out_specs=P(unreduced={"y"}))
    for run in both(same):
        y = run(terms)
        assert y.sharding.spec.unreduced == {"y"}
        near(y, 2 * X @ X.T)
    program = jax.jit(same).lower(terms).compile().as_text()
    assert "psum" not in program and "all_reduce" not in program, program
    for run in both(jax.shard_map(lambda u: lax.psum(u, "y"), out_specs=P())):  # the specification of operands is that of their types
        near(run(terms), X @ X.T)
    for run in both(jax.shard_map(lambda u: lax.psum_scatter(u, "y", tiled=True), out_specs=P("y"))):
        assert run(terms).sharding.spec[0] == "y"
        near(run(terms), X @ X.T)
    whole_input = put(X, None, None)
    refused(ValueError, "does not match the specs of the input", lambda: jax.shard_map(lambda u: u, in_specs=P(unreduced={"y"}), out_specs=P())(whole_input))
    refused(ValueError, "replication", lambda: jax.shard_map(lambda u: u, out_specs=P())(terms))
    refused(ValueError, "vary_unreduced_cast is a Varying->Unreduced collective", lambda: jax.shard_map(lambda u: u, out_specs=P(unreduced={"x"}))(whole_input))
    for run in both(jax.shard_map(lambda a: a, in_specs=P(None, "y"), out_specs=P(None, None, unreduced={"y"}))):  # varying results are cast
        near(run(put(X, None, "y")), X.reshape(8, 4, 4).sum(1))
    """)


def test_derivatives(on_mesh):
    """What is reduced has derivatives that are terms, and the other way round; values are those of one device."""
    on_mesh("""
    w, a = put(X.T, None, None, reduced={"x"}), put(X, "x", None)
    found = []
    @jax.shard_map(out_specs=P("x", None))
    def product(a, w):
        seen(found, w)
        return jnp.sin(a @ w)
    loss = lambda a, w: product(a, w).sum()
    da, dw = jax.jit(jax.grad(loss, (0, 1)))(a, w)
    c = np.cos(X @ X.T)
    assert found[0] == "R-" and dw.sharding.spec.unreduced == {"x"} and da.sharding.spec == P("x", None)
    near(dw, X.T @ c)
    near(da, c @ X)

    gather = jax.shard_map(lambda p: lax.all_gather(p, "y", tiled=True, to="reduced"), in_specs=P("y"), out_specs=P(reduced={"y"}))
    total = jax.shard_map(lambda u: lax.psum(u, "y"), in_specs=P(unreduced={"y"}), out_specs=P())
    p = put(X, "y")
    text = str(jax.make_jaxpr(jax.grad(lambda p: jnp.sin(gather(p)).sum()))(p))
    assert "all_gather_reduced" in text and "unreduced_reduce_scatter" in text, text
    for run in both(jax.grad(lambda p: jnp.sin(gather(p)).sum())):
        assert run(p).sharding.spec[0] == "y"
        near(run(p), np.cos(X))
    terms = jax.reshard(put(X, None, None), P(None, None, unreduced={"y"}))
    for run in both(jax.grad(lambda u: jnp.sin(total(u)).sum())):
        assert run(terms).sharding.spec.reduced == {"y"}
        near(run(terms), np.cos(X))
    """)


def test_every_cast_has_the_other_as_its_transpose(on_mesh):
    on_mesh("""
    pairs = [
        (lambda v: lax.pcast(v, "y", to="unreduced"), P("x", "y"), P("x", None, unreduced={"y"}), "vary_unreduced_cast_p", "reduced_vary_cast_p"),
        (lambda v: lax.pcast(v, "y", to="reduced"), P("x", None), P("x", None, reduced={"y"}), "preduced", "unreduced_psum"),
        (lambda v: lax.pcast(v, "y", to="varying"), P("x", None, reduced={"y"}), P("x", "y"), "reduced_vary_cast_p", "vary_unreduced_cast_p"),
        (lambda v: lax.psum(v, "y"), P("x", None, unreduced={"y"}), P("x", None), "unreduced_psum", "preduced"),
        (lambda v: lax.psum_scatter(v, "y", scatter_dimension=1, tiled=True), P("x", None, unreduced={"y"}), P("x", "y"), "unreduced_reduce_scatter", "all_gather_reduced"),
        (lambda v: lax.all_gather(v, "y", axis=1, tiled=True, to="reduced"), P("x", "y"), P("x", None, reduced={"y"}), "all_gather_reduced", "unreduced_reduce_scatter"),
    ]
    for cast, ins, outs, there, back in pairs:
        f = jax.shard_map(cast, in_specs=ins, out_specs=outs)
        x = jax.reshard(put(X, None, None), ins)
        y, pull = jax.vjp(f, x)
        text = str(jax.make_jaxpr(f)(x)), str(jax.make_jaxpr(lambda ct: jax.vjp(f, x)[1](ct))(y))
        assert f" {there}[" in text[0] and f" {back}[" in text[1], (there, back, text)
        # inner products: <f(x), t> == <x, pull(t)>
        ct = jax.reshard(put(np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape), None, None), P(*outs.partitions, unreduced=outs.reduced, reduced=outs.unreduced))
        (g,) = pull(ct)
        assert g.sharding.spec.unreduced == ins.reduced and g.sharding.spec.reduced == ins.unreduced
        np.testing.assert_allclose((whole(y) * whole(ct)).sum(), (whole(x) * whole(g)).sum(), rtol=1e-4)
    """)


def test_refusals(on_mesh):
    on_mesh("""
    a = put(X, "x", "y")
    def body(f): return lambda: jax.shard_map(lambda v: f(lax.pcast(v, "y", to="unreduced")), out_specs=P("x", None, unreduced={"y"}))(a)
    for f, error, words in [
        (jnp.sin, NotImplementedError, "unreduced rule for sin"),
        (lambda u: u * u, Exception, "cannot be unreduced since mul is bilinear"),
        (lambda u: u + 1.0 * lax.psum(u, "y"), Exception, "unreduced while"),
        (lambda u: lax.ppermute(u, "y", [(0, 1)]), ValueError, "cannot accept args which are unreduced"),
        (lambda u: lax.all_gather(u, "y"), ValueError, "cannot accept args which are unreduced"),
        (lambda u: lax.pmax(u, "y"), ValueError, "cannot accept args which are unreduced"),
        (lambda u: lax.pcast(u, "y", to="varying"), ValueError, "Unsupported pcast from=unreduced"),
        (lambda u: lax.pcast(u, ("x", "y"), to="reduced"), ValueError, "jax.lax.pcast can only accept axis_name which"),
        (lambda u: lax.psum(u, ("x", "y")), ValueError, "jax.lax.psum can only accept axis_name which"),
    ]:
        refused(error, words, body(f))
    auto = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    jax.set_mesh(auto)
    refused(ValueError, "can only be used when the mesh passed to shard_map contains", lambda: jax.shard_map(lambda v: v, in_specs=P(unreduced={"x"}), out_specs=P())(X))
    jax.set_mesh(mesh)
    refused(NotImplementedError, "full manual mode", lambda: jax.shard_map(lambda v: v, in_specs=P(unreduced={"x"}), out_specs=P(), axis_names={"x"})(a))
    """)


def test_unchecked_bodies_take_values_as_they_are_sharded(on_mesh):
    on_mesh("""
    parts = jax.shard_map(lambda v: v, in_specs=P("x"), out_specs=P(unreduced={"x"}), check_vma=False)
    for run in both(parts):
        near(run(put(X, "x")), X.reshape(2, 4, 16).sum(0))
    terms = jax.reshard(put(X, None, None), P(None, None, unreduced={"x"}))
    copies = jax.shard_map(lambda v: v, in_specs=P(unreduced={"x"}), out_specs=P("x"), check_vma=False)
    for run in both(copies):
        y = whole(run(terms))
        np.testing.assert_allclose(y[:8] + y[8:], X, rtol=1e-5)
    for run in both(jax.grad(lambda v: copies(parts(v)).sum())):
        near(run(put(X, "x")), np.ones_like(X))
    """)


def test_one_device_and_lanes(on_mesh):
    """Where the axes have one device or none, sums are what they are over many."""
    on_mesh("""
    one = jax.make_mesh((1, 1), ("x", "y"))
    jax.set_mesh(one)
    for run in both(jax.shard_map(lambda v: lax.psum(lax.pcast(v, "y", to="unreduced"), "y"), out_specs=P("x"))):
        near(run(put(X, "x", "y")), X)
    for run in both(jax.shard_map(lambda v: lax.pcast(v, "y", to="unreduced"), out_specs=P("x", None, unreduced={"y"}))):
        near(run(put(X, "x", "y")), X)
    """)
