"""What tests/rules.py runs for primitives that tests/examples.py has not, or has with operands of one dtype only.

A row: the primitive, a function in which it stands, its arguments, the positions of its data (None: all doubles), and options.
"""

import numpy as np


def pointwise(jax, floats, ints):
    lax, jnp = jax.lax, jax.numpy
    one, two = (floats(2, 3),), (floats(2, 3), floats(2, 3, seed=1))
    for name in ("not", "population_count", "clz"):
        yield name, {"not": lax.bitwise_not}.get(name) or getattr(lax, name), one
    for name in ("and", "or", "xor"):
        yield name, getattr(lax, f"bitwise_{name}"), two
    for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic", "eq", "ne", "lt", "le", "gt", "ge", "mulhi"):
        yield name, getattr(lax, name), two
    for name in ("real", "imag"):
        yield name, getattr(lax, name), one
    yield "conj", lambda x: lax.conj(x), one
    yield "complex", lambda x, y: lax.complex(x, y), two
    yield "copy", lambda x: jnp.array(x, copy=True), one
    yield "add_any", lambda x: jax.vjp(lambda x: jnp.sin(x) * x, x)[1](x)[0], one
    yield "polygamma", lambda x: lax.polygamma(jnp.ones_like(x), x), (floats(3, low=0.5, high=4),)
    yield "bessel_i0e", lax.bessel_i0e, one
    yield "bessel_i1e", lax.bessel_i1e, one
    yield "bessel_i0e_minus_i1e", lambda x: jax._core.bind("bessel_i0e_minus_i1e", x), one
    for name in ("lt_to", "le_to"):
        yield name, lambda x, y, name=name: getattr(lax, f"{name}_p").bind(x, y), two
    yield "stop_gradient", lax.stop_gradient, one, None, {"means": lambda x: 0 * x}
    yield "reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), one, None, {"means": lambda x: x, "slack": 300}
    yield "convert_element_type", lambda x: lax.convert_element_type(x, "complex128"), one
    yield (
        "bitcast_convert_type",
        lambda x: lax.bitcast_convert_type(x, {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}.get(x.dtype.itemsize, "complex128")),
        one,
    )
    unit = floats(3, low=0.2, high=0.8)
    positive = (floats(3, low=0.5, high=3), floats(3, seed=1, low=0.5, high=3))
    for name in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad"):
        yield name, getattr(lax, name), positive, None, {"slack": 20}
    yield "regularized_incomplete_beta", lax.betainc, (floats(3, low=0.5, high=3), floats(3, seed=1, low=0.5, high=3), unit), None, {"slack": 20}
    shapes = (floats(3, low=0.5, high=3), floats(3, seed=1, low=0.5, high=3), unit)
    for name in ("betainc_grad_a", "betainc_grad_b"):
        yield name, lambda *x, name=name: jax._core.bind(name, *x), shapes, None, {"slack": 20}
    yield "zeta", lax.zeta, (floats(3, low=2, high=4), floats(3, seed=1, low=1, high=3)), None, {"slack": 5}


def structural(jax, floats, ints):
    lax, jnp = jax.lax, jax.numpy
    one = (floats(2, 3),)
    yield "reduce_xor", lambda x: lax.reduce_xor(x, (0,)), one
    yield "reduce_and", lambda x: lax.reduce_and(x, (0,)), one
    yield "reduce_or", lambda x: lax.reduce_or(x, (0,)), one
    yield "stack", lambda x, y: jnp.stack([x, y], 1), (floats(2, 3), floats(2, 3, seed=1))
    yield "unstack", lambda x: jnp.unstack(x, axis=1), one
    yield "tile", lambda x: jnp.tile(x, (2, 2)), one
    yield "top_k", lambda x: lax.top_k(x, 2), one
    yield "approx_top_k", lambda x: lax.approx_max_k(x, 2), one
    yield "optimization_barrier", lambda x: lax.optimization_barrier((x, x * x)), one
    yield "device_put", lambda x: jax.device_put(x, jax.devices()[0]), one
    cut = {"mesh": (("x", 2),), "spec": (("x",), ()), "unconstrained_dims": (), "devices": ()}
    yield "sharding_constraint", lambda x: jax._core.bind("sharding_constraint", x, **cut), one
    yield "reshard", lambda x: jax._core.bind("reshard", x), one
    yield "iota", lambda: lax.broadcasted_iota("int32", (2, 3), 1), ()
    yield "rng_uniform", lambda: lax.rng_uniform(0.0, 1.0, (3,)), (), (), {"impure": True}
    at = np.array([[2], [0]], np.int32)
    dims = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    for name in ("", "-add", "-sub", "-mul", "-min", "-max"):
        f = getattr(lax, "scatter" + name.replace("-", "_"))
        yield f"scatter{name}", lambda x, u, f=f: f(x, at, u, dims, unique_indices=True), (floats(4, 3), floats(2, 3, seed=1))
    convolve = lambda x, k: lax.conv_general_dilated(x, k, (1,), ((1, 1),), rhs_dilation=(2,))
    yield "conv_general_dilated", convolve, (floats(2, 2, 5), floats(3, 2, 2, seed=1)), None, {"slack": 5}
    yield "fft", lambda x: lax.fft(x, "FFT" if jnp.iscomplexobj(x) else "RFFT", (5,)), (floats(2, 5),), None, {"slack": 5}
    yield "reduce", lambda x: lax.reduce(x, jnp.ones((), x.dtype), lambda a, b: a * b + a + b, (1,)), one, None, {"slack": 5}
    general = lambda x: lax.reduce_window(x, jnp.zeros((), x.dtype), lambda a, b: a + b + a * b, (2,), (1,), "VALID")
    yield "reduce_window", general, (floats(5, low=0.2, high=1),), None, {"slack": 5}
    for name, op, start in (("sum", lax.add, 0), ("max", lax.max, -np.inf), ("min", lax.min, np.inf)):
        first = lambda x, start=start: start if jnp.issubdtype(x.dtype, jnp.inexact) or not start else limit(jnp, x.dtype, start)
        f = lambda x, op=op, first=first: lax.reduce_window(x, jnp.asarray(first(x), x.dtype), op, (2,), (1,), "SAME")
        yield f"reduce_window_{name}", f, (floats(5),)
    pool = lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "VALID")
    yield "select_and_scatter_add", lambda x: jax.grad(lambda x: jnp.sum(jnp.sin(pool(x))))(x), (floats(6),), None, {"slack": 5}
    yield "select_and_gather_add", lambda x: jax.jvp(pool, (x,), (jnp.sin(x),))[1], (floats(6),), None, {"slack": 5}
    sizes = np.array([2, 1], np.int32)
    yield "ragged_dot_general", lambda x, y: lax.ragged_dot(x, y, sizes), (floats(3, 2), floats(2, 2, 4, seed=1)), None, {"slack": 5}


def limit(jnp, dtype, start):
    if dtype == bool:
        return start > 0
    return jnp.iinfo(dtype).max if start > 0 else jnp.iinfo(dtype).min


def randomness(jax, floats, ints):
    lax, random = jax.lax, jax.random
    seed = np.uint32([3, 4])
    yield "random_seed", lambda: random.key(3), ()
    yield "random_wrap", lambda: random.wrap_key_data(seed), ()
    yield "random_unwrap", lambda: random.key_data(random.key(3)), ()
    yield "random_clone", lambda: random.clone(random.key(3)), ()
    yield "random_bits", lambda: random.bits(random.key(3), (3,)), ()
    yield "random_split", lambda: random.split(random.key(3)), ()
    yield "random_fold_in", lambda: random.fold_in(random.key(3), 5), ()
    yield "threefry2x32", lambda: lax.threefry2x32_p.bind(*seed, seed, seed) if hasattr(lax, "threefry2x32_p") else (), ()
    word = np.uint32([1, 2, 3])
    yield "philox4x32", lambda: lax.philox4x32_p.bind(word, word, word, word, word, word) if hasattr(lax, "philox4x32_p") else (), ()
    yield "rng_bit_generator", lambda: lax.rng_bit_generator(np.uint32([1, 2, 3, 4]), (3,)), ()


def control(jax, floats, ints):
    lax, jnp = jax.lax, jax.numpy
    x = (floats(3, low=0.2, high=1),)
    yield "while", lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x + x), (0, x))[1], x
    grow = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * jnp.sin(x)), (0, x))[1]
    slope = lambda x: jax.grad(lambda x: jnp.sum(jnp.real(grow(x) ** 2)))(x)
    for name in ("tape_scan", "tape_len", "empty_tape"):
        yield name, slope, x, None, {"slack": 10}
    yield "cond", lambda x: lax.cond(jnp.real(x[0]) > 0, lambda x: x * x, lambda x: -x, x), x
    yield "scan", lambda c, xs: lax.scan(lambda c, x: (c * x + c, c), c, xs), (floats(2), floats(4, 2, seed=1)), None, {"slack": 5}
    yield "xla_pmap", lambda x: jax.pmap(lambda x: x * x)(x[None]), x
    mesh, rows = jax.sharding.AbstractMesh((1,), ("x",)), jax.sharding.PartitionSpec("x")
    yield "shard_map", lambda x: jax.shard_map(lambda x: x * x, mesh=mesh, in_specs=rows, out_specs=rows)(x), x

    @jax.custom_vjp
    def cube(x):
        return x * x * x

    cube.defvjp(lambda x: (x * x * x, x), lambda x, ct: (3 * x * x * ct,))
    yield "custom_vjp_call", cube, x

    def slope_of_cube(x):
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            raise TypeError("integers have no tangents")
        return jax.vjp(cube, x)[1](jnp.sin(x))[0]

    yield "custom_lin", slope_of_cube, x
    matrix = lambda x: jnp.diag(x + 1) + 0 * x[0]

    def solve(x, b):
        a = matrix(x)
        return lax.custom_linear_solve(lambda v: a @ v, b, lambda mv, b: b / (x + 1), lambda mv, b: b / (x + 1))

    yield "custom_linear_solve", solve, (*x, floats(3, seed=1)), None, {"slack": 5}
    host = lambda y: np.asarray(y)
    shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)
    yield "pure_callback", lambda x: jax.pure_callback(host, shape(x), x, vmap_method="sequential"), x
    yield "io_callback", lambda x: jax.experimental.io_callback(host, shape(x), x), x
    yield "debug_callback", lambda x: (jax.debug.callback(lambda y: None, x), x * x)[1], x
    yield "debug_print", lambda x: (jax.debug.print("{}", x), x * x)[1], x


def collectives(jax, floats, ints):
    lax, jnp = jax.lax, jax.numpy
    x = (floats(2, 3),)

    def lanes(f, args=x):
        """f on two lanes that know their axis by its name."""
        return (lambda *x: jax.vmap(f, axis_name="i", axis_size=2, in_axes=0)(*(jnp.stack([x, x[::-1]]) for x in x))), args, None, {"within": f}

    for f in (lax.psum, lax.pmax, lax.pmin):
        yield f.__name__, *lanes(lambda x, f=f: f(x, "i"))
    yield "psum_invariant", *lanes(lambda x: lax.psum_invariant_p.bind(x, axes=("i",), axis_index_groups=None))
    yield "unreduced_psum", *lanes(lambda x: lax.unreduced_psum_p.bind(x, axes=("i",), axis_index_groups=None))
    for cast in (lax.pvary_p, lax.preduced_p, lax.vary_unreduced_cast_p_p, lax.reduced_vary_cast_p_p):
        yield cast.name, *lanes(lambda x, cast=cast: cast.bind(x, axes=("i",)))
    yield "axis_index", *lanes(lambda: lax.axis_index("i"), ())
    yield "all_gather", *lanes(lambda x: lax.all_gather(x, "i"))
    for to in ("reduced", "invarying"):
        yield {"reduced": "all_gather_reduced", "invarying": "all_gather_invariant"}[to], *lanes(lambda x, to=to: lax.all_gather(x, "i", to=to))
    yield "reduce_scatter", *lanes(lambda x: lax.psum_scatter(x, "i"))
    part = dict(axis_name=("i",), axis_index_groups=None, axis_size=2, scatter_dimension=0, tiled=False)
    yield "unreduced_reduce_scatter", *lanes(lambda x: lax.unreduced_reduce_scatter_p.bind(x, **part))
    yield "all_to_all", *lanes(lambda x: lax.all_to_all(x, "i", 0, 0))
    yield "ppermute", *lanes(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 0)]))


def linalg(jax, floats, ints):
    lax, jnp = jax.lax, jax.numpy
    la = lax.linalg
    square = floats(3, 3) + 3 * np.diag([1.0, 2.0, 4.0])
    hermitian = lambda x: x + jnp.conj(x).T + 12 * jnp.diag(jnp.asarray(np.array([1.0, 2.0, 4.0]), x.dtype))
    loose = {"slack": 30}
    yield "cholesky", lambda x: la.cholesky(hermitian(x), symmetrize_input=False), (floats(3, 3),), None, loose
    yield "triangular_solve", lambda a, b: la.triangular_solve(a, b, left_side=True, lower=True), (square, floats(3, 2, seed=1)), None, loose
    yield (
        "cholesky_update",
        lambda x, w: la.cholesky_update(hermitian(x) * jnp.asarray(np.triu(np.ones((3, 3))), x.dtype), w),
        (floats(3, 3), floats(3, seed=1)),
        None,
        loose,
    )
    yield "tridiagonal_solve", lambda d, b: la.tridiagonal_solve(d * 0.1, 4 + d, d * 0.2, b), (floats(4), floats(4, 2, seed=1)), None, loose
    yield "lu", lambda x: la.lu(x), (square,), None, loose
    yield "lu_pivots_to_permutation", lambda: la.lu_pivots_to_permutation(np.int32([2, 1, 2]), 3), ()
    yield "symmetric_product", lambda a, c: la.symmetric_product(a, c + c.T, symmetrize_output=True), (floats(3, 2), floats(3, 3, seed=1)), None, loose
    yield "qr", lambda x: la.qr(x, full_matrices=False), (square,), None, loose
    yield "geqrf", lambda x: jnp.linalg.qr(x, mode="raw"), (square,), None, loose
    yield "householder_product", lambda a, t: la.householder_product(a, t), (floats(4, 3), floats(3, seed=1, low=0.2, high=1)), None, loose
    yield "ormqr", lambda a, t, c: la.ormqr(a, t, c), (floats(3, 3), floats(3, seed=1, low=0.2, high=1), floats(3, 2, seed=2)), None, loose
    yield "hessenberg", lambda x: la.hessenberg(x), (square,), None, loose
    yield "tridiagonal", lambda x: la.tridiagonal(hermitian(x)), (floats(3, 3),), None, loose
    yield "eigh", lambda x: spaces(jnp, *la.eigh(hermitian(x))), (floats(3, 3),), None, loose
    yield "eig", lambda x: la.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False), (square,), None, loose
    yield "svd", lambda x: la.svd(x, compute_uv=False), (square,), None, loose
    yield "schur", lambda x: la.schur(x), (square,), None, loose


def spaces(jnp, v, w):
    """Values, and projections on the vectors, which have no free phase."""
    return w, jnp.einsum("ik,jk->kij", v, jnp.conj(v))


def more(jax, floats, ints):
    for family in (pointwise, structural, randomness, control, collectives, linalg):
        yield from family(jax, floats, ints)
