"""Arrays that are the sum of what each device has (`unreduced`), and those made whole of one (`reduced`): types, values on each device, derivatives."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.ours

PROGRAM = """
import json, sys
import numpy as np
import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from ferrax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 2), ("x", "y"))
found = {}


def whole(x):
    "The array, of what the devices along its unreduced axes have."
    spec, parts = x.sharding.spec, {}
    for s in x.addressable_shards:
        key = tuple((i.start, i.stop) for i in s.index)
        parts.setdefault(key, []).append((s.index, np.asarray(s.data)))
    out = np.zeros(x.shape, x.dtype)
    copies = np.prod([mesh.shape[a] for a in mesh.axis_names if a not in spec.unreduced and not any(a in spec.axes_of(d) for d in range(x.ndim))], initial=1)
    for many in parts.values():
        for index, p in many:
            out[index] += p / copies if np.issubdtype(x.dtype, np.floating) else p // copies
    return out


def case(name, f, *args):
    try:
        with jax.set_mesh(mesh):
            y = f(*args)
            found[name] = [str(y.aval), str(y.sharding.spec), whole(y).tolist()]
    except Exception as e:
        found[name] = [type(e).__name__, str(e)]


with jax.set_mesh(mesh):
    base = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    rows = jax.device_put(base, P("x", None))
    columns = jax.device_put(base, P(None, "x"))
    terms = jnp.dot(columns, rows, out_sharding=P(unreduced={"x"}))
    other = jnp.einsum("ij,jk->ik", columns, rows, out_sharding=P(unreduced={"x"}))
    mixed = jnp.dot(jax.reshard(base, P("y", "x")), rows, out_sharding=P("y", unreduced={"x"}))
    reduced = jax.reshard(base, P(reduced={"x"}))
    total = base @ base

for how in ("eager", "jit"):
    run = (lambda f: f) if how == "eager" else jax.jit
    linear = {
        "identity": lambda u: u * reduced / reduced if False else u,
        "add": lambda u: u + other,
        "mul": lambda u: u * reduced,
        "convert": lambda u: u.astype(jnp.float16),
        "reshape": lambda u: u.reshape(2, 2, 4),
        "transpose": lambda u: u.T,
        "squeeze": lambda u: lax.squeeze(lax.expand_dims(u, (1,)), (1,)),
        "broadcast": lambda u: lax.broadcast(u, (3,)),
        "slice": lambda u: u[1:3],
        "pad": lambda u: lax.pad(u, jnp.float32(2), ((1, 0, 0), (0, 0, 0))),
        "concatenate": lambda u: jnp.concatenate([u, other]),
        "stack": lambda u: jnp.stack([u, other]),
        "split": lambda u: jnp.split(u, 2)[1],
        "sum": lambda u: u.sum(0),
        "select": lambda u: lax.select(base > 7, u, other),
        "reduced": lambda u: jax.reshard(u, P()),
        "scattered": lambda u: jax.reshard(u, P("x", None)),
        "scattered other": lambda u: jax.reshard(u, P(None, "y")),
        "gathered": lambda u: jax.reshard(jax.reshard(rows, P(unreduced={"x"})), P()),
    }
    for name, f in linear.items():
        case(how + " " + name, run(f), terms)
        if name in ("transpose", "convert", "slice", "reduced"):
            case(how + " mixed " + name, run(f), mixed)
    refused = {
        "sin": lambda u: jnp.sin(u),
        "div": lambda u: u / 2,
        "neg": lambda u: -u,
        "max": lambda u: jnp.max(u),
        "sub": lambda u: u - other,
        "half add": lambda u: u + base,
        "square": lambda u: u * u,
        "half mul": lambda u: u * base,
        "dot": lambda u: u @ u,
        "sort": lambda u: jnp.sort(u),
        "reduced and not": lambda u: reduced + base,
        "reduced and cut": lambda u: reduced + rows,
    }
    for name, f in refused.items():
        case(how + " " + name, run(f), terms)
    # a value that is reduced has the terms of its derivative
    grads = {
        "dot": lambda w: (rows @ w).sum(),
        "dot sin": lambda w: jnp.sin(rows @ jnp.exp(w / 16)).sum(),
        "cast": lambda w: (rows @ w.astype(jnp.float32)).sum(),
        "reshard": lambda w: (jax.reshard(w, P("x", None)) * rows).sum(),
        "scan": lambda w: lax.scan(lambda c, _: (c + rows @ w, None), rows, None, length=2)[0].sum(),
        "remat": lambda w: jax.checkpoint(lambda w: jnp.sin(rows @ w))(w).sum(),
    }
    for name, f in grads.items():
        case(how + " grad " + name, run(jax.grad(f)), reduced)
        case(how + " value " + name, run(f), reduced)
    case(how + " unreduced grad", run(jax.grad(lambda u: (jax.reshard(u, P()) * base).sum())), terms)
with jax.set_mesh(mesh):
    try:
        np.asarray(terms)
    except NotImplementedError as e:
        found["read"] = str(e)
    found["shown"] = repr(terms)
    found["replicated"] = terms.is_fully_replicated
    text = jax.jit(lambda a, b: jax.reshard(jnp.dot(a, b, out_sharding=P(unreduced={"x"})), P("x", None))).lower(columns, rows).as_text()
    found["text"] = text
print(json.dumps(found))
"""

TOTAL = [[sum(float((4 * i + k) * (4 * k + j)) for k in range(4)) for j in range(4)] for i in range(4)]


@pytest.fixture(scope="module")
def found():
    import os

    env = dict(os.environ, FERRAX_NUM_CPU_DEVICES="4")
    out = subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr[-3000:]
    return json.loads(out.stdout.splitlines()[-1])


def _expected(name):
    import numpy as np

    base = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    total = base @ base
    return {
        "add": total + total,
        "mul": total * base,
        "reshape": total.reshape(2, 2, 4),
        "transpose": total.T,
        "broadcast": np.broadcast_to(total, (3, 4, 4)),
        "slice": total[1:3],
        "pad": np.pad(total, ((1, 0), (0, 0)), constant_values=2),
        "concatenate": np.concatenate([total, total]),
        "stack": np.stack([total, total]),
        "split": total[2:],
        "sum": total.sum(0),
        "gathered": base,
    }.get(name, total)


LINEAR = {
    "identity": "{U:x}",
    "add": "{U:x}",
    "mul": "{U:x}",
    "convert": "{U:x}",
    "reshape": "{U:x}",
    "transpose": "{U:x}",
    "squeeze": "{U:x}",
    "broadcast": "{U:x}",
    "slice": "{U:x}",
    "pad": "{U:x}",
    "concatenate": "{U:x}",
    "stack": "{U:x}",
    "split": "{U:x}",
    "sum": "{U:x}",
    "select": "{U:x}",
    "reduced": "",
    "scattered": "",
    "scattered other": "",
    "gathered": "",
}


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_linear_operations_leave_terms_that_add_up(found, how, name):
    import numpy as np

    kind, spec, values = found[f"{how} {name}"]
    assert kind.endswith("]" + LINEAR[name]), (kind, spec)
    assert ("unreduced={'x'}" in spec) == bool(LINEAR[name])
    np.testing.assert_allclose(values, _expected(name), rtol=1e-3 if name == "convert" else 1e-6)


@pytest.mark.parametrize("name", ["transpose", "convert", "slice", "reduced"])
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_dimensions_may_be_cut_by_other_axes(found, how, name):
    import numpy as np

    if name == "slice":  # two rows do not divide by two devices otherwise
        assert "y" in found[f"{how} mixed {name}"][1]
    np.testing.assert_allclose(found[f"{how} mixed {name}"][2], _expected(name), rtol=1e-3)


@pytest.mark.parametrize("how", ["eager", "jit"])
@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("sin", "NotImplementedError", "unreduced rule for sin is not implemented"),
        ("div", "NotImplementedError", "unreduced rule for div is not implemented"),
        ("neg", "NotImplementedError", "unreduced rule for neg is not implemented"),
        ("sub", "NotImplementedError", "unreduced rule for sub is not implemented"),
        ("max", "NotImplementedError", "rule for reduce_max is not implemented"),
        ("sort", "NotImplementedError", "rule for sort is not implemented"),
        ("half add", "ShardingTypeError", "lhs is unreduced while rhs is not"),
        ("square", "ShardingTypeError", "cannot be unreduced since mul is bilinear"),
        ("half mul", "ShardingTypeError", "RHS should be reduced along the same axes LHS is unreduced on"),
        ("dot", "ShardingTypeError", "lhs or rhs passed to dot_general cannot be unreduced"),
        ("reduced and not", "ShardingTypeError", "Inputs cannot be replicated on the same axes that another input is reduced on"),
        ("reduced and cut", "ShardingTypeError", "Inputs cannot be sharded/varying on the same axes that another input is reduced on"),
    ],
)
def test_nonlinear_functions_are_refused(found, how, name, error, words):
    kind, message = found[f"{how} {name}"][:2]
    assert kind == error
    assert words in message


@pytest.mark.parametrize("name", ["dot", "dot sin", "cast", "reshard", "scan", "remat"])
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_a_reduced_value_has_the_terms_of_its_derivative(found, how, name):
    import numpy as np

    base = np.arange(16.0).reshape(4, 4)
    ones = np.ones((4, 4))
    w = base
    expected = {
        "dot": base.T @ ones,
        "cast": base.T @ ones,
        "scan": 2 * (base.T @ ones),
        "remat": base.T @ np.cos(base @ w),
        "reshard": base,
        "dot sin": (base.T @ np.cos(base @ np.exp(w / 16))) * np.exp(w / 16) / 16,
    }[name]
    kind, spec, values = found[f"{how} grad {name}"]
    assert kind == "float32[4,4]{U:x}", (kind, spec)
    np.testing.assert_allclose(values, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("how", ["eager", "jit"])
def test_the_derivative_by_terms_is_reduced(found, how):
    import numpy as np

    kind, _, values = found[f"{how} unreduced grad"]
    assert kind == "float32[4,4]{R:x}"
    np.testing.assert_allclose(values, np.arange(16.0).reshape(4, 4))


def test_reading_terms_as_a_whole_is_refused(found):
    assert "unreduced" in found["read"]
    assert found["shown"].startswith("Array(shape=(4, 4), dtype=float32, sharding=NamedSharding(")
    assert found["replicated"] is False


def test_one_collective_where_terms_are_scattered(found):
    text = found["text"]
    assert "reduce_scatter" in text
    assert "psum" not in text
    assert 'sdy.sharding_constraint f32[4,4] <@mesh, [{}, {}], unreduced={"x"}>' in text
