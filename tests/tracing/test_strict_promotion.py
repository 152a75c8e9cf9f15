"""Strict promotion of dtypes and ranks binds what the user gives to a function, also where the function's body promotes it by other functions of the library."""

import importlib

import numpy as np
import pytest

# Calls of operands x (integers) and y (floats of the same shape), by what they are called on.
DTYPES = {
    "jnp": """
        add(x, y) | where(x > 0, x, y) | fmax(x, y) | fmin(x, y) | clip(y, x) | clip(y, None, x) | allclose(x, y) | isclose(x, y) | append(x, y)
        append(x, y, axis=0) | concat([x, y]) | concatenate([x, y]) | stack([x, y]) | vstack([x, y]) | hstack([x, y]) | dstack([x, y]) | column_stack([x, y])
        block([x, y]) | block([[x], [y]]) | diff(x, prepend=y) | diff(x, append=y) | inner(x, y) | vdot(x, y) | vecdot(x, y) | dot(x, y) | matmul(x, y)
        tensordot(x, y, 1) | outer(x, y) | kron(x, y) | cross(x, y) | convolve(x, y) | correlate(x, y) | einsum('i,i->', x, y)
        matvec(jnp.outer(x, x), y) | vecmat(y, jnp.outer(x, x))
        linspace(x, y, 3) | digitize(x, y) | searchsorted(x, y) | isin(x, y) | union1d(x, y) | intersect1d(x, y) | setdiff1d(x, y) | setxor1d(x, y)
        histogram2d(x, y) | interp(y, jnp.asarray(y), y.astype('float16')) | cov(x, y) | polyadd(x, y) | polyval(x, y) | array_equal(x, y) | trapezoid(x, y)
        put(y, jnp.array([0]), x[:1], inplace=False) | put_along_axis(y, jnp.array([0]), x[:1], 0, inplace=False) | average(x, weights=y)
        place(y, x > 1, x, inplace=False) | fill_diagonal(jnp.outer(y, y), x, inplace=False) | select([y], [x], x)
        select([x > 0], [x], jnp.float32(2)) | choose(jnp.array([0, 1, 0]), [x, y], mode='clip') | copysign(y, y.astype('float16')) | hypot(y, y.astype('float16'))
    """,
    "jnp.linalg": "outer(x, y) | vecdot(x, y) | multi_dot([x, jnp.outer(x, x), y]) | matmul(x, y) | cross(x, y) | solve(jnp.eye(3), y.astype('float16'))",
    "scipy.linalg": "block_diag(x, y) | toeplitz(x, y) | hankel(x, y) | leslie(x, y[:2])",
    "scipy.special": "xlogy(y, y.astype('float16')) | xlog1py(y, y.astype('float16')) | betainc(y, y, y.astype('float16')) | rel_entr(y, y.astype('float16')) | sph_harm_y(x, x, y, x)",
    "scipy.ndimage": "map_coordinates(y, [y.astype('float16')], 1)",
    "scipy.interpolate": """
        RegularGridInterpolator((x,), y)(y) | RegularGridInterpolator((y,), x)(x) | RegularGridInterpolator((x,), y, method='nearest')(y)
        RegularGridInterpolator((y,), y, fill_value=jnp.int32(0))(y) | RegularGridInterpolator((y,), y.astype('float16'))(y)
    """,
    "scipy.stats.dirichlet": "pdf(y, x) | logpdf(y, x)",
    "scipy.stats.norm": "logpdf(y, y.astype('float16')) | cdf(y, 0.0, y.astype('float16'))",
    "nn": "celu(y, y.astype('float16')) | elu(y, y.astype('float16')) | leaky_relu(y, y.astype('float16')) | squareplus(y, y.astype('float16'))",
}
# Calls of a vector v and a matrix m, whose ranks differ.
RANKS = {
    "jnp": "add(v, m) | fmax(v, m) | fmin(v, m) | clip(m, v) | clip(m, None, v) | isclose(v, m) | allclose(v, m) | hypot(v, m) | arctan2(v, m) | equal(v, m)"
}
# What remains allowed: an operand with Python numbers, a requested dtype, a single dtype.
ALLOWED = {
    "jnp": """
        fmax(y, 2.0) | fmax(y, 2) | clip(y, 0, 1.0) | clip(x, 0, 2) | append(y, 1.0) | hstack([x, y], dtype='float32') | vstack([x, y], dtype='float32')
        vdot(x, y, preferred_element_type='float32') | vecdot(x, y, preferred_element_type='float32') | diff(y, prepend=0.0) | linspace(0, y, 3) | cov(y, fweights=x)
        interp(x, x, y) | digitize(y, y) | isin(y, 1.0) | percentile(x, 30) | histogram2d(y, y)
    """,
    "nn": "elu(y) | celu(y, 2.0) | leaky_relu(x) | elu(x) | squareplus(y)",
    "scipy.special": "xlogy(x, x) | xlogy(2.0, y)",
    "scipy.ndimage": "map_coordinates(x, [y], 1)",
    "scipy.interpolate": "RegularGridInterpolator((y,), y)(y) | RegularGridInterpolator((y,), y, fill_value=0)(y) | RegularGridInterpolator((x,), x)(x)",
}


def calls(table):
    return [f"{place}.{call.strip()}" for place, lines in table.items() for line in lines.strip().splitlines() for call in line.split(" | ")]


@pytest.fixture
def run(jax, jnp):
    def run(call, under):
        for path in ("scipy.linalg", "scipy.special", "scipy.ndimage", "scipy.stats", "scipy.interpolate", "scipy.stats.dirichlet"):
            importlib.import_module(f"{jax.__name__}.{path}")
        x, y = jnp.array([1, 2, 3]), jnp.array([0.25, 0.5, 0.75], "float32")
        names = {"jnp": jnp, "np": np, "nn": jax.nn, "scipy": jax.scipy, "x": x, "y": y, "v": y, "m": jnp.ones((2, 3))}
        code = compile(call, call, "eval")
        with under:
            eval(code, names)

    return run


@pytest.mark.parametrize("call", calls(DTYPES))
def test_dtypes_of_operands(jax, run, call):
    run(call, jax.numpy_dtype_promotion("standard"))
    with pytest.raises(jax.dtypes.TypePromotionError, match="strict|implicit dtype promotion"):
        run(call, jax.numpy_dtype_promotion("strict"))


@pytest.mark.parametrize("call", calls(RANKS))
def test_ranks_of_operands(jax, run, call):
    run(call, jax.numpy_rank_promotion("allow"))
    with pytest.raises(ValueError, match="rank_promotion"):
        run(call, jax.numpy_rank_promotion("raise"))
    with pytest.warns(UserWarning, match="rank promotion"):
        run(call, jax.numpy_rank_promotion("warn"))


@pytest.mark.ours  # JAX forbids some of these from within
@pytest.mark.parametrize("call", calls(ALLOWED))
def test_allowed_calls(jax, run, call):
    run(call, jax.numpy_dtype_promotion("strict"))


def test_within_transforms(jax, jnp):
    """The user's call is the user's within any transform, and is checked again though the same function was traced for the library."""
    x, y = jnp.arange(3), jnp.ones(3)
    for f in (jnp.fmax, jnp.append, jnp.vecdot, jnp.isin, jax.scipy.linalg.toeplitz):
        jax.jit(f)(x, y)
        with jax.numpy_dtype_promotion("strict"):
            ways = (jax.jit(f), lambda x, y: jax.jit(f)(x, y), lambda x, y: jax.vmap(f, in_axes=(None, 0))(x, y[None]), jax.make_jaxpr(f))
            for way in ways:
                with pytest.raises(jax.dtypes.TypePromotionError):
                    way(x, y)


def transforms(jax, jnp):
    """Ways to have a function of two arrays called."""
    lax, f32 = jax.lax, jax.ShapeDtypeStruct((3,), "float32")
    custom_vjp = lambda f: jax.custom_vjp(lambda x, y: f(x, y))

    def with_rule(f):
        g = jax.custom_jvp(lambda x, y: f(x, y))
        g.defjvp(lambda p, t: (g(*p), t[1]))
        return g

    def with_backward(f):
        g = custom_vjp(f)
        g.defvjp(lambda x, y: (f(x, y), None), lambda r, t: (None, t))
        return g

    def with_batching(f):
        g = jax.custom_batching.custom_vmap(lambda x, y: f(x, y))
        g.def_vmap(lambda size, batched, x, y: (f(x, y), True))
        return g

    checkify = importlib.import_module(f"{jax.__name__}.experimental.checkify")
    return {
        "jit": jax.jit,
        "inline": lambda f: jax.jit(f, inline=True),
        "vmap": lambda f: lambda x, y: jax.vmap(f)(x[None], y[None]),
        "grad": lambda f: lambda x, y: jax.grad(lambda y: f(x, y).sum())(y),
        "jvp": lambda f: lambda x, y: jax.jvp(lambda y: f(x, y), (y,), (y,)),
        "vjp": lambda f: lambda x, y: jax.vjp(lambda y: f(x, y), y),
        "linearize": lambda f: lambda x, y: jax.linearize(lambda y: f(x, y), y),
        "hessian": lambda f: lambda x, y: jax.hessian(lambda y: f(x, y).sum())(y),
        "jacfwd": lambda f: lambda x, y: jax.jacfwd(f, 1)(x, y),
        "checkpoint": jax.checkpoint,
        "make_jaxpr": jax.make_jaxpr,
        "eval_shape": lambda f: lambda x, y: jax.eval_shape(f, x, y),
        "lower": lambda f: lambda x, y: jax.jit(f).lower(x, y),
        "trace": lambda f: lambda x, y: jax.jit(f).trace(x, y),
        "custom_jvp": with_rule,
        "custom_vjp": with_backward,
        "custom_vmap": with_batching,
        "scan": lambda f: lambda x, y: lax.scan(lambda c, a: (c, f(*a)), 0, (x, y)),
        "map": lambda f: lambda x, y: lax.map(lambda a: f(*a), (x, y)),
        "fori_loop": lambda f: lambda x, y: lax.fori_loop(0, 2, lambda i, c: c + f(x, y).sum(), 0.0),
        "while_loop": lambda f: lambda x, y: lax.while_loop(lambda c: c < f(x, y).sum(), lambda c: c + 1, 0.0),
        "cond": lambda f: lambda x, y: lax.cond(True, f, f, x, y),
        "switch": lambda f: lambda x, y: lax.switch(jnp.int32(0), [f, f], x, y),
        "vectorize": lambda f: jnp.vectorize(f, signature="(n),(n)->(n)"),
        "apply_along_axis": lambda f: lambda x, y: jnp.apply_along_axis(lambda x: f(x, y), 0, x),
        "tree.map": lambda f: lambda x, y: jax.tree.map(f, {"a": x}, {"a": y}),
        "tree.reduce": lambda f: lambda x, y: jax.tree.reduce(f, [x, y]),
        "checkify": lambda f: checkify.checkify(f),
        "closure_convert": lambda f: lambda x, y: jax.closure_convert(lambda y: f(x, y), f32)[0](y),
        "named_call": jax.named_call,
        "pmap": lambda f: lambda x, y: jax.pmap(f)(x[None], y[None]),
        "export": lambda f: lambda x, y: importlib.import_module(f"{jax.__name__}.export").export(jax.jit(f))(x, y),
        "linear_transpose": lambda f: lambda x, y: jax.linear_transpose(lambda y: f(x, y), y),
        "fwd_and_bwd": lambda f: lambda x, y: jax.vjp(jax.jit(lambda y: f(x, y)), y)[1](y),
    }


@pytest.mark.parametrize(
    "name",
    """jit inline vmap grad jvp vjp linearize hessian jacfwd checkpoint make_jaxpr eval_shape lower trace custom_jvp custom_vjp custom_vmap scan map fori_loop while_loop
    cond switch vectorize apply_along_axis tree.map tree.reduce checkify closure_convert named_call pmap export linear_transpose fwd_and_bwd""".split(),
)
def test_every_transform_calls_for_the_user(jax, jnp, name):
    """A function of the library that a transform calls is called by the user, as is a function that the user wrote."""
    x, y = jnp.arange(3), jnp.ones(3)
    way = transforms(jax, jnp)[name]
    for f in (jnp.multiply, lambda x, y: x * y, lambda x, y: jnp.multiply(x, y), jnp.kron if name == "vmap" else jnp.multiply):
        way(f)(x, y)
        with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError):
            way(f)(x, y)


@pytest.mark.ours  # JAX forbids some of these from within
@pytest.mark.parametrize(
    "name", "jit vmap grad jvp vjp linearize hessian checkpoint make_jaxpr eval_shape custom_jvp custom_vjp scan map cond switch checkify".split()
)
def test_transforms_do_not_make_library_code_user_code(jax, jnp, name):
    """Functions whose bodies mix dtypes are the library's within transforms too."""
    x, y = jnp.arange(3), jnp.ones(3)
    way = transforms(jax, jnp)[name]
    for f in (
        lambda x, y: jnp.percentile(y, 30) * y,
        lambda x, y: jnp.where(x > 0, jax.scipy.special.logsumexp(y), jnp.std(y)),
        lambda x, y: jnp.nan_to_num(y) + jnp.sinc(y),
        lambda x, y: y * jnp.nanmean(y) + jnp.linspace(0, 1, 3, dtype="float32")[0],
    ):
        with jax.numpy_dtype_promotion("strict"):
            way(f)(x, y)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "float32", "bfloat16", "complex64", "bool"])
@pytest.mark.parametrize("update", ["set", "min", "max", "add", "multiply"])
def test_updates_by_numbers_of_pythons(jax, jnp, dtype, update):
    """A bool is a number: integers take it, as they take 1; floats take 1 and 1.0, and bools only bools."""
    x = jnp.ones(3, dtype)
    inexact = dtype in ("float32", "bfloat16", "complex64")
    fits = {"bool": update in ("set", "min", "max") if dtype == "bool" else not inexact, "int": dtype != "bool", "float": inexact}
    for given in (True, 1, 1.0):
        for at in (0, slice(1), np.array([0]), np.array([True, False, False])):
            f = lambda x, given=given, at=at: getattr(x.at[at], update)(given)
            with jax.numpy_dtype_promotion("strict"):
                for way in (f, jax.jit(f)):
                    if fits[type(given).__name__]:
                        assert way(x).dtype == dtype and way(x)[1:].tolist() == x[1:].tolist()
                    else:
                        with pytest.raises((TypeError, jax.dtypes.TypePromotionError)):
                            way(x)


def test_updates_by_arrays_of_bools_stay_refused(jax, jnp):
    for given in (np.False_, np.array(False), jnp.array(False), [False]):
        with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError):
            jnp.arange(3).at[0 if np.ndim(given) == 0 else slice(1)].set(given)
