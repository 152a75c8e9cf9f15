"""ndimage, image, interpolate, integrate, optimize, cluster and spatial: values, derivatives, batches, and what is refused."""

import itertools

import ferrax as jax
import ferrax.image as image
import ferrax.numpy as jnp
import ferrax.scipy.cluster.vq as vq
import ferrax.scipy.integrate as integrate
import ferrax.scipy.interpolate as interpolate
import ferrax.scipy.ndimage as ndimage
import ferrax.scipy.optimize as optimize
import numpy as np
import pytest
from ferrax.scipy.spatial.transform import Rotation, Slerp
from ferrax.test_util import check_grads


def drawn(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def near(got, want, tol=5e-6):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, (got.shape, want.shape)
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * max(1.0, np.nanmax(np.abs(want), initial=0.0)))


# ---- ndimage ----

# where index i of an axis of 3 elements is read, for i from -7
OUTSIDE = {
    "nearest": [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2],
    "wrap": [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0],
    "mirror": [1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2],
    "reflect": [0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0],
}


@pytest.mark.parametrize("mode", [*OUTSIDE, "constant"])
def test_values_outside_of_the_array(mode):
    x = np.array([10.0, 20.0, 40.0], np.float32)
    i = np.arange(-7, 7)
    want = x[OUTSIDE[mode]] if mode in OUTSIDE else np.where((i >= 0) & (i < 3), x[np.clip(i, 0, 2)], -5)
    near(ndimage.map_coordinates(x, [i.astype(np.float32)], 1, mode, -5.0), want)
    near(ndimage.map_coordinates(x, [i], 0, mode, -5.0), want)
    middle = (want[:-1] + want[1:]) / 2
    near(ndimage.map_coordinates(x, [i[:-1] + np.float32(0.5)], 1, mode, -5.0), middle)
    near(ndimage.map_coordinates(x, [i[:-1] + np.float32(0.5)], 0, mode, -5.0), want[1:])
    near(ndimage.map_coordinates(np.float32([3.0]), [i], 1, mode if mode != "constant" else "wrap"), np.full(14, 3.0))


def test_bilinear_places():
    x = drawn(4, 5)
    a, b = np.random.default_rng(1).uniform(0, 3, 20).astype(np.float32), np.random.default_rng(2).uniform(0, 4, 20).astype(np.float32)
    i, j = a.astype(int), b.astype(int)
    s, t = a - i, b - j
    want = (1 - s) * (1 - t) * x[i, j] + s * (1 - t) * x[i + 1, j] + (1 - s) * t * x[i, j + 1] + s * t * x[i + 1, j + 1]
    near(ndimage.map_coordinates(x, [a, b], 1), want)
    near(jax.jit(lambda x, c: ndimage.map_coordinates(x, c, order=1))(x, [a, b]), want)
    near(ndimage.map_coordinates(x, jnp.stack([a, b]).reshape(2, 4, 5), 1), want.reshape(4, 5))
    near(jax.vmap(lambda c: ndimage.map_coordinates(x, [c, c], 1))(a.reshape(4, 5)), ndimage.map_coordinates(x, [a, a], 1).reshape(4, 5))
    assert ndimage.map_coordinates(np.arange(5), [np.float32([0.5, 1.5, 2.5, 1.2])], 1).tolist() == [1, 2, 3, 1]
    assert ndimage.map_coordinates(-np.arange(5), [np.float32([0.5, 1.5, 2.5])], 1).tolist() == [-1, -2, -3]
    assert ndimage.map_coordinates(jnp.arange(5.0, dtype=np.float16), [a], 1).dtype == np.float16
    near(ndimage.map_coordinates(x * 1j, [a, b], 1), want * 1j)


def test_derivatives_of_places():
    with jax.enable_x64(True):
        x, a, b = drawn(4, 5, dtype=np.float64), np.array([0.3, 1.7, 5.2]), np.array([2.2, 0.4, -1.6])
        for mode in [*OUTSIDE, "constant"]:
            check_grads(lambda x, a, b, mode=mode: ndimage.map_coordinates(x, [a, b], 1, mode), (x, a, b), order=2, modes=("fwd", "rev"))


# ---- image: of the squares of 0 .. 5, as JAX has them ----

RESIZED = {
    ("nearest", True, 4): [0, 4, 9, 25],
    ("nearest", True, 11): [0, 0, 1, 1, 4, 9, 9, 16, 16, 25, 25],
    ("linear", True, 3): [1, 7, 18.857142857143],
    ("linear", False, 3): [0.5, 6.5, 20.5],
    ("linear", True, 4): [0.375, 3.555555555556, 10.777777777778, 21.625],
    ("lanczos3", True, 4): [0.135812134155, 2.896918995409, 10.718674522345, 22.572102357717],
    ("lanczos3", False, 3): [0.259168704156, 6.25, 21.542787286064],
    ("lanczos5", True, 3): [0.357255942695, 6.114662247419, 20.473271247488],
    ("lanczos5", False, 4): [0.060381170259, 2.897941027848, 9.917251113574, 23.609946533972],
    ("cubic", True, 3): [0.410041841004, 6.530534351145, 19.970711297071],
    ("bicubic", False, 4): [0.124087591241, 3.0625, 10.5625, 23.445255474453],
    ("cubic", True, 11): [-0.082684824903, 0.163132351012, 0.747892113476, 1.985537190083, 3.820247933884, 6.25, 9.27479338843, 12.894628099174, 17.259980435086,
                          22.889073499191, 25.744163424125],
    ("cubic-pytorch", True, 3): [0.410041841004, 6.530534351145, 19.970711297071],
    ("bicubic-pytorch", True, 3): [0.410041841004, 6.530534351145, 19.970711297071],
    ("bicubic-pytorch", False, 3): [0.21875, 6.125, 21.15625],
    ("cubic-pytorch", False, 3): [0.21875, 6.125, 21.15625],
    ("cubic-pytorch", False, 11): [-0.101779676935, 0.143148948159, 0.656203042825, 1.930597295267, 3.739387678437, 6.125, 9.391153268219, 12.619928625094,
                                   17.568533996995, 22.676253756574, 25.916017092412],
    ("area", True, 4): [0.333333333333, 3, 11.333333333333, 22],
    ("area", True, 11): [0, 0.166666666667, 1, 2, 4, 6.5, 9, 13.666666666667, 16, 23.5, 25],
}  # fmt: skip


@pytest.mark.parametrize("case", RESIZED, ids=str)
def test_images_resized(case):
    method, antialias, n = case
    with jax.enable_x64(True):
        x = np.arange(6.0) ** 2
        near(image.resize(x, (n,), method, antialias), RESIZED[case], 1e-11)
        near(image.resize(np.stack([x, 2 * x], 1), (n, 2), method, antialias), np.outer(RESIZED[case], [1, 2]), 1e-11)
        near(jax.vmap(lambda x: image.resize(x, (n,), method, antialias))(np.stack([x, -x])), np.outer([1, -1], RESIZED[case]), 1e-11)
        if method != "nearest":
            check_grads(lambda x: image.resize(x, (n,), method, antialias), (x,), order=1, modes=("fwd", "rev"))


MOVED = {
    ("linear", 0.5, 0.0, True): [1, 7, 18.857142857143, 0, 0, 0, 0, 0],
    ("linear", 2.0, -3.0, True): [1.75, 3.25, 5.25, 7.75, 10.75, 14.25, 18.25, 22.75],
    ("linear", -1.0, 6.0, True): [25, 16, 9, 4, 1, 0, 0, 0],
    ("cubic", 2.0, -3.0, False): [1.5625, 3.0625, 5.0625, 7.5625, 10.5625, 14.0625, 18.473282442748, 23.445255474453],
    ("lanczos3", 0.5, 0.0, False): [0.259168704156, 6.25, 21.542787286064, 0, 0, 0, 0, 0],
    ("cubic-pytorch", 2.0, -3.0, False): [1.609375, 2.828125, 5.203125, 7.234375, 10.796875, 13.640625, 18.77734375, 23.20703125],
    ("cubic-pytorch", 0.5, 0.0, False): [0.21875, 6.125, 21.15625, 25, 25, 0, 0, 0],
    ("area", 2.0, -3.0, True): [1, 4, 4, 9, 9, 16, 16, 25],
    ("linear", 1.0, 10.0, False): [0, 0, 0, 0, 0, 0, 0, 0],
}


@pytest.mark.parametrize("case", MOVED, ids=str)
def test_images_moved(case):
    method, scale, translation, antialias = case
    with jax.enable_x64(True):
        x, s, t = np.arange(6.0) ** 2, np.array([scale]), np.array([translation])
        near(image.scale_and_translate(x, (8,), (0,), s, t, method, antialias), MOVED[case], 1e-11)
        both = image.scale_and_translate(np.outer(x, x), (8, 8), (0, 1), np.repeat(s, 2), np.repeat(t, 2), method, antialias)
        near(both, np.outer(MOVED[case], MOVED[case]), 1e-11)


def test_images_and_their_places_have_derivatives():
    with jax.enable_x64(True):
        x = drawn(6, dtype=np.float64)
        f = lambda x, s, t: image.scale_and_translate(x, (8,), (0,), s, t, "cubic")
        check_grads(f, (x, np.array([1.3]), np.array([0.21])), order=1, modes=("fwd", "rev"))
        assert np.isfinite(jax.grad(lambda x: image.resize(x, (9,), "lanczos3").sum())(x)).all()


def test_dtypes_of_images():
    i = jnp.arange(6)
    assert image.resize(i, (3,), "nearest").dtype == i.dtype
    assert image.resize(i, (3,), "linear").dtype == np.float32
    assert image.resize(i.astype(np.float16), (3,), "cubic").dtype == np.float16
    near(image.resize(i * 1j, (3,), image.ResizeMethod.LINEAR), np.array([5 / 7, 2.5, 30 / 7]) * 1j)
    assert image.resize(i, (0,), "linear").shape == (0,)
    assert image.ResizeMethod.from_string("triangle") == image.ResizeMethod.LINEAR


# ---- interpolate, integrate, vq ----

GRID = (np.array([0.0, 1, 3], np.float32), np.array([0.0, 2, 5, 6], np.float32))


@pytest.mark.parametrize("fill", [np.nan, None, 2.0], ids=str)
@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("turned", [False, True])
def test_regular_grid_interpolator_is_scipys(fill, method, turned):
    v = drawn(3, 4, 2)
    xi = np.random.default_rng(1).uniform(-1, 7, (30, 2)).astype(np.float32)
    grid = (GRID[0][::-1], GRID[1]) if turned else GRID
    f = interpolate.RegularGridInterpolator(grid, v[::-1] if turned else v, method, fill_value=fill)
    want = np.empty((30, 2), np.float32)
    for n, x in enumerate(xi):
        out = any(not g[0] <= c <= g[-1] for g, c in zip(GRID, x, strict=True))
        i = [int(np.clip(np.searchsorted(g, c) - 1, 0, len(g) - 2)) for g, c in zip(GRID, x, strict=True)]
        t = [(c - g[k]) / (g[k + 1] - g[k]) for g, c, k in zip(GRID, x, i, strict=True)]
        if method == "nearest":
            want[n] = v[tuple([k + (s > 0.5) for k, s in zip(i, t, strict=True)])]
        else:
            want[n] = sum(v[i[0] + a, i[1] + b] * (t[0] if a else 1 - t[0]) * (t[1] if b else 1 - t[1]) for a, b in itertools.product((0, 1), repeat=2))
        if out and fill is not None:
            want[n] = fill
    near(f(xi), want)
    near(f((xi[:, 0], xi[:, 1])), want)
    near(f(xi.reshape(5, 6, 2)), want.reshape(5, 6, 2))
    near(jax.jit(lambda v, xi: interpolate.RegularGridInterpolator(GRID, v, method, fill_value=fill)(xi))(v, xi), want)
    near(jax.vmap(f)(xi[:, None])[:, 0], want)


def test_grids_of_one_axis():
    f = interpolate.RegularGridInterpolator((jnp.arange(3.0),), jnp.array([0.0, 10.0, 40.0]))
    near(f(jnp.array([0.5, 1.5, 2.0])), [5, 25, 40])
    assert np.isnan(f(jnp.array([np.nan]))).all()
    near(jax.grad(lambda x: f(x[None])[0])(1.5), 30)
    check_grads(lambda v, x: interpolate.RegularGridInterpolator(GRID[:1], v)(x), (drawn(3), jnp.array([[0.4], [2.1]])), order=1, modes=("fwd", "rev"))


def test_trapezoids():
    x, y = np.array([0.0, 1, 4], np.float32), np.array([1.0, 3, 5], np.float32)
    near(integrate.trapezoid(y, x), 14)
    near(integrate.trapezoid(y, dx=2), 12)


def test_vq_assigns_the_nearest_code():
    obs, codes = drawn(20, 3), drawn(5, 3, seed=1)
    apart = np.sqrt(((obs[:, None] - codes) ** 2).sum(-1))
    for o, c in [(obs, codes), (jnp.asarray(obs), jnp.asarray(codes))]:
        k, d = vq.vq(o, c)
        np.testing.assert_array_equal(k, apart.argmin(1))
        near(d, apart.min(1))
    k, d = vq.vq(obs[:, 0], codes[:, 0])
    np.testing.assert_array_equal(k, abs(obs[:, :1] - codes[:, 0]).argmin(1))
    # differences of large numbers stay exact
    near(vq.vq(np.float32([[10001.0]]), np.float32([[10000.0]]))[1], [1.0])
    check_grads(lambda o, c: vq.vq(o, c)[1], (obs, codes), order=1, modes=("fwd", "rev"), atol=2e-2, rtol=2e-2)


# ---- optimize ----

METHODS = ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"]


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


@pytest.mark.parametrize("method", METHODS)
def test_minimize_finds_the_minimum(method):
    with jax.enable_x64(True):
        for n in (2, 3, 10):
            r = optimize.minimize(rosenbrock, jnp.zeros(n), method=method)
            near(r.x, np.ones(n), 1e-3)
            assert r.success and r.status in (0, 4) and r.nfev >= r.nit > 0
            near(r.fun, rosenbrock(r.x), 1e-12)
            near(r.jac, jax.grad(rosenbrock)(r.x), 1e-12)
        r = optimize.minimize(himmelblau, jnp.ones(2), method=method, tol=1e-9)
        near(r.x, [3, 2], 1e-5)
        a = np.array([[3.0, 1], [1, 2]])
        quadratic = lambda x, b: x @ a @ x / 2 - b @ x
        b = np.array([1.0, -2])
        r = optimize.minimize(quadratic, jnp.zeros(2), (b,), method=method, tol=1e-10)
        near(r.x, np.linalg.solve(a, b), 1e-6)
        if method == "BFGS":
            near(r.hess_inv, np.linalg.inv(a), 1e-2)
        batch = jax.jit(jax.vmap(lambda b: optimize.minimize(quadratic, jnp.zeros(2), (b,), method=method, tol=1e-10).x))
        near(batch(jnp.stack([b, -b, 0 * b])), np.stack([np.linalg.solve(a, v) for v in (b, -b, 0 * b)]), 1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_searches_that_end_otherwise(method):
    start = optimize.minimize(lambda x: (x**2).sum(), jnp.zeros(2), method=method)
    assert start.success and start.nit == 0 and start.nfev == 1
    few = optimize.minimize(rosenbrock, jnp.zeros(3), method=method, options={"maxiter": 3})
    assert not few.success and few.status == 1 and few.nit == 3
    lost = optimize.minimize(lambda x: (jnp.nan * x**2).sum(), jnp.ones(2), method=method)
    assert not lost.success
    down = optimize.minimize(lambda x: -(x**2).sum(), jnp.ones(2), method=method, options={"maxiter": 30})
    assert not down.success and down.fun < -2
    plane = optimize.minimize(lambda x: ((x - 2) ** 2).sum(), jnp.zeros((2, 3)), method=method)
    near(plane.x, np.full((2, 3), 2.0), 1e-4)


# ---- rotations ----

Q = np.array([0.1, 0.2, 0.3, 0.9])
Q = Q / np.linalg.norm(Q)
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]


@pytest.mark.parametrize("method", ["BFGS", "l-bfgs-experimental-do-not-rely-on-this"])
def test_minimize_of_complex_numbers(jax, jnp, method):
    """A real function of complex numbers, in any shape, batched, and with arguments that are pytrees."""
    z0 = jnp.array([[1.0, 2.0 - 3.0j], [4.0, -5.0j]])
    distance = lambda z, p: jnp.sum(jnp.abs(z - p["to"]) ** 2) + p["plus"][0]
    found = jax.jit(lambda p: optimize.minimize(distance, jnp.zeros_like(z0), (p,), method=method))({"to": z0, "plus": [2.0]})
    assert found.success and found.x.dtype == found.jac.dtype == jnp.complex64 and found.fun.dtype == jnp.float32
    np.testing.assert_allclose(found.x, z0, atol=1e-4)
    steep = lambda z: jnp.sum(jnp.abs(z - z0) ** 4 + z.real**2)
    begun = optimize.minimize(steep, jnp.zeros_like(z0), method=method, options={"maxiter": 2})
    np.testing.assert_allclose(begun.jac, jax.grad(steep)(begun.x), rtol=1e-4, atol=1e-4)
    to = jnp.array([1.0, 2.0j])
    batch = jax.vmap(lambda t: optimize.minimize(lambda z: jnp.sum(jnp.abs(z - t) ** 2), jnp.zeros(3, complex), method=method).x)(to)
    np.testing.assert_allclose(batch, jnp.broadcast_to(to[:, None], (2, 3)), atol=1e-4)


def matrix_of(q):
    """R v = v + 2 w u x v + 2 u x (u x v)."""
    u, w = q[:3], q[3]
    k = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    return np.eye(3) + 2 * w * k + 2 * k @ k


def about(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    i, j = [(1, 2), (2, 0), (0, 1)]["xyz".index(axis)]
    m = np.eye(3)
    m[i, i] = m[j, j] = c
    m[i, j], m[j, i] = -s, s
    return m


def test_representations_of_rotations():
    with jax.enable_x64(True):
        qs = drawn(50, 4, dtype=np.float64)
        r = Rotation.from_quat(qs)
        ms = np.stack([matrix_of(q / np.linalg.norm(q)) for q in qs])
        near(r.as_matrix(), ms, 1e-12)
        for other in (Rotation.from_matrix(ms), Rotation.from_rotvec(r.as_rotvec()), Rotation.from_mrp(r.as_mrp()),
                      Rotation.from_rotvec(r.as_rotvec(degrees=True), degrees=True)):  # fmt: skip
            near(other.as_matrix(), ms, 1e-12)
        near(np.linalg.norm(r.as_rotvec(), axis=1), r.magnitude(), 1e-12)
        near(np.cos(r.magnitude()), (np.trace(ms, axis1=1, axis2=2) - 1) / 2, 1e-12)
        near((r * r[:1]).as_matrix(), ms @ ms[0], 1e-12)
        near(r.inv().as_matrix(), np.swapaxes(ms, 1, 2), 1e-12)
        v = drawn(50, 3, dtype=np.float64)
        near(r.apply(v), np.einsum("nij,nj->ni", ms, v), 1e-12)
        near(r.apply(v, inverse=True), np.einsum("nji,nj->ni", ms, v), 1e-12)
        near(r[3].apply(v), v @ ms[3].T, 1e-12)
        canonical = r.as_quat(canonical=True)
        assert (canonical[:, 3] >= 0).all()
        near(np.roll(r.as_quat(scalar_first=True), -1, axis=1), r.as_quat(), 1e-12)
        assert Rotation.concatenate([r, r[0]]).quat.shape == (51, 4)
        assert len(r) == 50 and r[0].single and bool(r[0]) and not r.single
        near(Rotation.identity(2).as_matrix(), np.stack([np.eye(3)] * 2), 1e-12)
        half = np.diag([1.0, -1, -1])
        near(Rotation.from_matrix(half).as_matrix(), half, 1e-12)


@pytest.mark.parametrize("seq", [*SEQUENCES, *[s.upper() for s in SEQUENCES]])
def test_euler_angles(seq):
    with jax.enable_x64(True):
        r = np.random.default_rng(3)
        low, high = (0, np.pi) if seq[0] == seq[2] else (-np.pi / 2, np.pi / 2)
        angles = np.stack([r.uniform(-np.pi, np.pi, 20), r.uniform(low, high, 20), r.uniform(-np.pi, np.pi, 20)], 1)
        ms = []
        for a in angles:
            parts = [about(c, t) for c, t in zip(seq.lower(), a, strict=True)]
            ms.append(parts[0] @ parts[1] @ parts[2] if seq.isupper() else parts[2] @ parts[1] @ parts[0])
        turns = Rotation.from_euler(seq, angles)
        near(turns.as_matrix(), np.stack(ms), 1e-12)
        near(turns.as_euler(seq), angles, 1e-7)
        near(turns.as_euler(seq, degrees=True), np.rad2deg(angles), 1e-7)
        # where the axes line up, the angles are others, and the rotation is the same
        for middle in (low, high):
            lined = Rotation.from_euler(seq, np.array([0.3, middle, 0.4]))
            again = lined.as_euler(seq)
            assert again[2] == 0
            near(Rotation.from_euler(seq, again).as_matrix(), lined.as_matrix(), 1e-7)


def test_fewer_euler_angles():
    near(Rotation.from_euler("x", 0.3).as_matrix(), about("x", 0.3))
    near(Rotation.from_euler("z", jnp.array([[0.3], [0.4]])).as_matrix(), np.stack([about("z", 0.3), about("z", 0.4)]))
    near(Rotation.from_euler("xy", jnp.array([0.1, 0.2])).as_matrix(), about("y", 0.2) @ about("x", 0.1))


def test_derivatives_of_rotations():
    with jax.enable_x64(True):
        near(jax.jacobian(lambda v: Rotation.from_rotvec(v).quat)(np.zeros(3)), np.eye(4, 3) / 2, 1e-12)
        near(jax.jacobian(lambda q: Rotation.from_quat(q).as_rotvec())(np.eye(4)[3]), 2 * np.eye(3, 4), 1e-12)
        v = np.array([0.3, -0.2, 0.5])
        for f in [lambda v: Rotation.from_rotvec(v).as_matrix(), lambda v: Rotation.from_rotvec(v).as_rotvec(), lambda v: Rotation.from_mrp(v).quat,
                  lambda v: Rotation.from_euler("xyz", v).as_euler("ZXZ"), lambda v: Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).quat,
                  lambda v: Rotation.from_rotvec(v).apply(v * v), lambda v: Rotation.from_rotvec(v).magnitude()]:  # fmt: skip
            check_grads(f, (v,), order=2, modes=("fwd", "rev"))
        check_grads(lambda v: Rotation.from_rotvec(v).as_matrix(), (1e-4 * v,), order=2, modes=("fwd", "rev"))
        vs = drawn(4, 3, dtype=np.float64)
        near(jax.vmap(lambda v: Rotation.from_rotvec(v).as_matrix())(vs), Rotation.from_rotvec(vs).as_matrix(), 1e-12)
        near(jax.jit(lambda r: r.as_matrix())(Rotation.from_rotvec(vs)), Rotation.from_rotvec(vs).as_matrix(), 1e-12)


def test_random_rotations_have_no_direction():
    r = Rotation.random(jax.random.key(0), 4000)
    near(np.linalg.norm(r.quat, axis=1), np.ones(4000))
    assert abs(np.mean(r.as_matrix(), 0)).max() < 0.05
    assert Rotation.random(jax.random.key(0)).single


def test_between_rotations():
    with jax.enable_x64(True):
        times = np.array([0.0, 1, 2, 5])
        r = Rotation.from_rotvec(drawn(4, 3, dtype=np.float64))
        s = Slerp.init(jnp.asarray(times), r)
        near(s(times).as_matrix(), r.as_matrix(), 1e-12)
        step = (r[1].inv() * r[2]).as_rotvec()
        near(s(1.25).as_matrix(), (r[1] * Rotation.from_rotvec(0.25 * step)).as_matrix(), 1e-12)
        near(jax.jit(lambda t: s(t).as_matrix())(np.array([0.5, 3.0])), s(np.array([0.5, 3.0])).as_matrix(), 1e-12)
        check_grads(lambda t: s(t).as_matrix(), (np.array([0.5, 3.0]),), order=1, modes=("fwd", "rev"))
        assert s(0.5).single


# ---- refusals ----

A = jnp.arange(6.0)
REFUSED = [
    (lambda: ndimage.map_coordinates(A, [A], 2), NotImplementedError, "map_coordinates currently requires order<=1"),
    (lambda: ndimage.map_coordinates(A, [A], 1, "bad"), NotImplementedError, "does not yet support mode bad. Currently supported modes are"),
    (lambda: ndimage.map_coordinates(A, [A, A], 1), ValueError, "coordinates must be a sequence of length input.ndim, but 2 != 1"),
    (lambda: ndimage.map_coordinates(A, [A * 1j], 1), TypeError, "floor does not accept dtype complex64."),
    (lambda: image.resize(A, (3,), "bad"), ValueError, 'Unknown resize method "bad"'),
    (lambda: image.resize(A, (3, 3), "linear"), ValueError, "shape must have length equal to the number of dimensions of x;  (3, 3) vs (6,)"),
    (lambda: image.resize(A[:0], (3,), "linear"), ValueError, "has no elements"),
    (lambda: image.scale_and_translate(A, (3,), (0,), jnp.ones(1), jnp.zeros(1), "nearest"), ValueError, "Nearest neighbor resampling is not currently"),
    (lambda: image.scale_and_translate(A, (3,), (1,), jnp.ones(1), jnp.zeros(1), "cubic"), ValueError, "axis 1 is out of bounds for array of dimension 1"),
    (lambda: image.scale_and_translate(A, (3,), (0,), jnp.ones(2), jnp.zeros(1), "cubic"), ValueError, "scale must hold one number for each"),
    (lambda: interpolate.RegularGridInterpolator((A,), A, bounds_error=True), NotImplementedError, "`bounds_error` takes no effect under JIT"),
    (lambda: interpolate.RegularGridInterpolator((A,), A, "cubic"), ValueError, "method 'cubic' is not defined"),
    (lambda: interpolate.RegularGridInterpolator((A, A), A), ValueError, "there are 2 point arrays, but values has 1 dimensions"),
    (lambda: interpolate.RegularGridInterpolator((A,), A[:3]), ValueError, "there are 6 points and 3 values in dimension 0"),
    (lambda: interpolate.RegularGridInterpolator((A * 0,), A), ValueError, "the points in dimension 0 must be strictly ascending or descending"),
    (lambda: interpolate.RegularGridInterpolator((A,), A)(A, method="bad"), ValueError, "method 'bad' is not defined"),
    (lambda: interpolate.RegularGridInterpolator((A,), A)(jnp.ones((4, 3))), ValueError, "the requested sample points xi have dimension 3"),
    (lambda: interpolate.RegularGridInterpolator((A,), A, fill_value=1j), ValueError, "fill_value must be either 'None' or of a type compatible"),
    (lambda: vq.vq(A.reshape(3, 2), A), ValueError, "Observation and code_book should have the same rank"),
    (lambda: vq.vq(A.reshape(3, 2), A.reshape(2, 3)), ValueError, "observations have 2 features, and codes 3"),
    (lambda: optimize.minimize(rosenbrock, A, method="x"), ValueError, "Method x not recognized"),
    (lambda: optimize.minimize(rosenbrock, A, 1.0, method="BFGS"), TypeError, "args argument to jax.scipy.optimize.minimize must be a tuple, got 1.0"),
    (lambda: optimize.minimize(rosenbrock, A, method="BFGS", options={"nosuch": 1}), TypeError, "unexpected keyword argument 'nosuch'"),
    (lambda: optimize.minimize(lambda x: x, A, method="BFGS"), TypeError, "Gradient only defined for scalar-output functions. Output had shape: (6,)."),
    (lambda: Rotation.from_quat(jnp.ones(3)), ValueError, "Expected `quat` to have shape (4,) or (N, 4), got (3,)"),
    (lambda: Rotation.from_matrix(jnp.eye(2)), ValueError, "Expected `matrix` to have shape (3, 3)"),
    (lambda: Rotation.from_euler("xX", jnp.ones(2)), ValueError, "Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got xX"),
    (lambda: Rotation.from_euler("xyzx", jnp.ones(4)), ValueError, "Expected axis specification to be a non-empty string of upto 3 characters, got xyzx"),
    (lambda: Rotation.from_euler("xyz", jnp.ones(2)), ValueError, "inconsistent size for core dimension 'm'"),
    (lambda: Rotation.from_quat(jnp.ones(4)).as_euler("xxz"), ValueError, "Expected consecutive axes to be different, got xxz"),
    (lambda: Rotation.from_quat(jnp.ones(4)).as_euler("xz"), ValueError, "Expected 3 axes, got xz."),
    (lambda: len(Rotation.from_quat(jnp.ones(4))), TypeError, "Single rotation has no len()."),
    (lambda: Rotation.from_quat(jnp.ones(4))[0], TypeError, "Single rotation is not subscriptable."),
    (lambda: Slerp.init(A[:3], Rotation.from_quat(jnp.ones(4))), ValueError, "`rotations` must be a sequence of at least 2 rotations."),
    (lambda: Slerp.init(A[:3], Rotation.from_quat(jnp.ones((2, 4)))), ValueError, "got 2 rotations and 3 timestamps."),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refusals(k):
    f, error, words = REFUSED[k]
    with pytest.raises(error) as e:
        f()
    assert words in str(e.value)
