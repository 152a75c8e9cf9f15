"""Special functions beyond those of a primitive: values of mpmath (golden/special.json), derivatives against identities, edges, dtypes, transforms."""

import json
import pathlib

import numpy as np
import pytest

ROWS = json.loads(pathlib.Path(__file__).parents[1].joinpath("golden").joinpath("special.json").read_text())
inf, nan = np.inf, np.nan
# Roundings that a function may be off in float32, in float64; those of a logarithm or a difference near its zero are absolute.
ROUNDINGS = {"log_ndtr": (16, 40), "owens_t": (12, 40), "expn": (12, 30), "sph_harm_y": (60, 60), "hyp1f1": (100, 200), "hyp2f1": (100, 200)}
# Where a value is below this its error counts against this: near zeros of what turns or changes its sign.
ABSOLUTE = {"expi": 1, "sici": 0.03, "fresnel": 0.1, "bessel_jn": 0.1, "sph_harm_y": 1, "spence": 1, "hyp1f1": 1, "hyp2f1": 1}
COMPLEX = ("wofz", "sph_harm_y")


def column(values, complex_=False):
    out = np.array(values, "float64")
    return out[..., 0] + 1j * out[..., 1] if complex_ else out


@pytest.mark.ours
@pytest.mark.parametrize("wide", [False, True])
def test_values_are_those_of_mpmath(jax, x64, wide):
    wrong = []
    for name, kwargs, arguments, wants in ROWS:
        arguments = [column(a, name == "wofz") for a in arguments]
        real, complex_ = ("float64", "complex128") if wide else ("float32", "complex64")
        xs = [a.astype(complex_ if a.dtype.kind == "c" else "int32" if name == "sph_harm_y" and i < 2 else real) for i, a in enumerate(arguments)]
        assert all((x == a).all() for x, a in zip(xs, arguments, strict=True))
        gots = getattr(jax.scipy.special, name)(*xs, **kwargs)
        info = np.finfo("float64" if wide else "float32")
        for got, want in zip(gots if isinstance(gots, tuple) else [gots], [column(w, name in COMPLEX) for w in wants], strict=True):
            assert got.dtype.itemsize // (2 if got.dtype.kind == "c" else 1) == (8 if wide else 4)
            got = np.asarray(got).astype(want.dtype)
            with np.errstate(all="ignore"):
                error = abs(got - want) / (abs(want) + float(info.tiny)) / float(info.eps)
            few, least = ROUNDINGS.get(name, (12, 12))[wide], ABSOLUTE.get(name, 0)
            with np.errstate(invalid="ignore"):
                distance = abs(got - want)
            fine = (error <= few) | (got == want) | (abs(want) > info.max) | (distance <= few * info.eps * least)
            for i in np.argwhere(~fine):
                point = [x[i[-1]].item() for x in xs]
                wrong.append(f"{name}{point}: {got[*i]}, not {want[*i]}: off by {error[*i]:.0f} roundings")
    assert not wrong, "\n".join(wrong)


# ---------------------------------------------------------------- the error function's relatives


@pytest.mark.ours
def test_error_functions_at_the_ends(jax, jnp):
    sp = jax.scipy.special
    np.testing.assert_array_equal(sp.erfcx(jnp.array([inf, -inf, nan, 0.0, -40.0])), [0, inf, nan, 1, inf])
    np.testing.assert_array_equal(sp.dawsn(jnp.array([inf, -inf, nan, 0.0])), [0, 0, nan, 0])
    np.testing.assert_array_equal(sp.log_ndtr(jnp.array([inf, -inf, nan])), [0, -inf, nan])
    np.testing.assert_array_equal(sp.owens_t(jnp.array([inf, 0, 0, nan, 1]), jnp.array([1, inf, -inf, 1, nan])), [0, 0.25, -0.25, nan, nan])
    np.testing.assert_array_equal(sp.wofz(jnp.array([0j, complex(inf, 0), complex(0, inf)])), [1, 0, 0])
    assert np.isnan(sp.wofz(nan)) and np.isinf(sp.wofz(-40j).real)
    np.testing.assert_allclose(sp.erfcx(1j), sp.wofz(-1.0), rtol=1e-6)
    np.testing.assert_allclose(sp.wofz(1e30), 1j / np.sqrt(np.pi) / 1e30, rtol=1e-6)


@pytest.mark.ours
def test_slopes_of_error_functions(jax, jnp):
    sp, x = jax.scipy.special, jnp.array([-2.0, 0.0, 0.5, 4.0, 40.0, 1e4])
    of = lambda f: np.asarray(jax.vmap(jax.grad(f))(x))
    # From mpmath at the last two.
    np.testing.assert_allclose(of(sp.erfcx)[-2:], [-3.522884253e-4, -5.6418957e-9], rtol=1e-5)
    np.testing.assert_allclose(of(sp.erfcx)[:4], 2 * x[:4] * sp.erfcx(x[:4]) - 2 / np.sqrt(np.pi), rtol=1e-5)
    np.testing.assert_allclose(of(sp.dawsn)[-2:], [-3.127934275e-4, -5.0000001e-9], rtol=1e-5)
    np.testing.assert_allclose(of(sp.log_ndtr)[:5], [2.3732155, 0.7978846, 0.5091604, 1.33834464e-4, 0], rtol=1e-5)
    np.testing.assert_allclose(jax.grad(sp.log_ndtr)(-1e6), 1e6, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(sp.wofz, holomorphic=True)(1.0 + 1j), -2 * (1 + 1j) * sp.wofz(1 + 1j) + 2j / np.sqrt(np.pi), rtol=1e-5)
    for argument in (0, 1):
        for h, a in ((0.75, 0.5), (1.5, 3.0), (-0.5, -2.0)):
            step = np.eye(2)[argument] * 1e-2
            secant = (sp.owens_t(h + step[0], a + step[1]) - sp.owens_t(h - step[0], a - step[1])) / 2e-2
            np.testing.assert_allclose(jax.grad(sp.owens_t, argument)(h, a), secant, rtol=2e-2, atol=1e-5)


@pytest.mark.ours
def test_log_ndtr_is_accurate_whatever_the_order_of_its_series(jax):
    assert jax.scipy.special.log_ndtr(-12.0, 1) == jax.scipy.special.log_ndtr(-12.0, series_order=30)
    with pytest.raises(ValueError, match="series_order must be <= 30."):
        jax.scipy.special.log_ndtr(1.0, 31)
    with pytest.raises(TypeError, match="series_order must be a Python integer."):
        jax.scipy.special.log_ndtr(1.0, 3.0)


# ---------------------------------------------------------------- binomial coefficients and rising factorials


@pytest.mark.ours
def test_large_binomial_coefficients_and_rising_factorials_keep_their_digits(jax, jnp):
    sp = jax.scipy.special
    n, k = jnp.array([10.0, 50, 1000, 1e6, 3]), jnp.array([3.0, 25, 2, 1, 3])
    np.testing.assert_allclose(sp.comb(n, k), [120, 126410606437752, 499500, 1e6, 1], rtol=2e-6)
    np.testing.assert_array_equal(sp.comb(jnp.array([3.0, 3, -1, nan]), jnp.array([4.0, -1, 0, 1])), [0, 0, 0, nan])
    np.testing.assert_allclose(jax.grad(sp.comb)(10.0, 3.0), 120 * (1 / 8 + 1 / 9 + 1 / 10), rtol=1e-5)
    np.testing.assert_allclose(sp.poch(jnp.array([1.0, 100, 1e5, 2.5]), jnp.array([3.0, 0.5, 2, 0])), [6, 9.98750786126252, 1e10 + 1e5, 1], rtol=2e-6)


# ---------------------------------------------------------------- integrals


GROWING = {
    "i0": (lambda jax: jax.scipy.special.i0, 1),
    "i1": (lambda jax: jax.scipy.special.i1, -1),
    "numpy.i0": (lambda jax: jax.numpy.i0, 1),
    "expi": (lambda jax: jax.scipy.special.expi, 0),
}


@pytest.mark.ours
@pytest.mark.parametrize("name", GROWING)
def test_derivatives_are_infinite_where_the_function_is(jax, jnp, name):
    """Those of every order: no sum of infinite terms is taken. Even and odd functions have odd and even derivatives."""
    function, parity = GROWING[name]
    for x in (94.0, 100.0, 800.0, 1e5, 1e30):
        forward = reverse = function(jax)
        sign = parity
        for _ in range(4):
            x = jnp.float32(x)
            assert forward(x) == reverse(x) == inf
            if parity:
                assert forward(-x) == reverse(-x) == sign * inf
            sign, reverse = -sign, jax.grad(reverse)
            forward = lambda x, f=forward: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


@pytest.mark.ours
@pytest.mark.parametrize("name", ["i0", "i1", "numpy.i0"])
def test_modified_bessel_functions_obey_their_equation(jax, jnp, name):
    """x^2 y'' + x y' = (x^2 + n^2) y, and its derivative."""
    f, n = GROWING[name][0](jax), int(name == "i1")
    for x in (0.0, 0.01, -0.4, 0.99, 1.01, -2.5, 7.0, 30.0, -80.0, 87.0):
        y, d1, d2, d3 = (float(g(jnp.float32(x))) for g in (f, jax.grad(f), jax.grad(jax.grad(f)), jax.grad(jax.jacfwd(jax.grad(f)))))
        np.testing.assert_allclose(x * x * d2 + x * d1, (x * x + n) * y, rtol=3e-6, atol=1e-6)
        np.testing.assert_allclose(x * x * d3 + 3 * x * d2 + d1, (x * x + n) * d1 + 2 * x * y, rtol=1e-5, atol=1e-6)


@pytest.mark.ours
def test_expi_is_finite_beyond_its_exponential(jax, jnp):
    x = jnp.array([88.0, 89.0, 91.5, 93.0])
    want = np.array([np.exp(v) / v for v in np.asarray(x, float)])
    np.testing.assert_allclose(
        jax.scipy.special.expi(x), want * [sum(np.prod(np.arange(1.0, k + 1) / v) for k in range(20)) for v in np.asarray(x, float)], rtol=1e-6
    )
    np.testing.assert_allclose(jax.vmap(jax.grad(jax.scipy.special.expi))(x), want, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(jax.grad(jax.scipy.special.expi)))(x), want * (1 - 1 / np.asarray(x, float)), rtol=1e-6)


@pytest.mark.ours
def test_integrals_at_the_ends(jax, jnp):
    sp, ends = jax.scipy.special, jnp.array([0.0, inf, -inf, nan])
    np.testing.assert_array_equal(sp.expi(ends), [-inf, inf, 0, nan])
    np.testing.assert_array_equal(sp.exp1(ends), [inf, 0, nan, nan])
    np.testing.assert_array_equal(sp.exp1(-1.0), nan)
    np.testing.assert_array_equal(sp.expn(jnp.array([0, 1, 2, 3, -1, 2, 2]), jnp.array([0, 0, 0, inf, 1, -1, nan])), [inf, inf, 1, 0, nan, nan, nan])
    np.testing.assert_array_equal(sp.expn(1.5, 1.0), nan)
    si, ci = sp.sici(ends)
    np.testing.assert_allclose(si, [0, np.pi / 2, -np.pi / 2, nan], rtol=1e-6)
    np.testing.assert_array_equal(ci, [-inf, 0, nan, nan])
    np.testing.assert_array_equal(sp.fresnel(ends), [[0, 0.5, -0.5, nan]] * 2)
    np.testing.assert_array_equal(sp.fresnel(jnp.array([1e30, -1e10])), [[0.5, -0.5]] * 2)
    np.testing.assert_allclose(sp.spence(ends), [np.pi**2 / 6, -inf, nan, nan], rtol=1e-6)


@pytest.mark.ours
@pytest.mark.parametrize("name", ["expi", "exp1", "sici", "fresnel", "spence"])
def test_slopes_of_integrals(jax, jnp, x64, name):
    f = getattr(jax.scipy.special, name)
    x, h = np.array([0.25, 0.999, 1.0, 1.75, 3.99, 5.5, 7.0, 30.0]), 1e-5
    secants = [(a - b) / (2 * h) for a, b in zip(jax.tree.leaves(f(x + h)), jax.tree.leaves(f(x - h)), strict=True)]
    for slope, secant in zip(jax.tree.leaves(jax.jvp(f, (x,), (np.ones_like(x),))[1]), secants, strict=True):
        np.testing.assert_allclose(slope, secant, rtol=1e-6, atol=1e-8)


@pytest.mark.ours
def test_slopes_of_integrals_where_their_forms_change(jax, jnp):
    sp = jax.scipy.special
    np.testing.assert_allclose(jax.grad(sp.spence)(1.0), -1)
    np.testing.assert_allclose(jax.grad(lambda x: sp.sici(x)[0])(0.0), 1)
    np.testing.assert_allclose(jax.grad(sp.expn, 1)(2.0, 0.75), -sp.expn(1.0, 0.75), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(sp.expn, 1)(0.0, 0.75), -np.exp(-0.75) * (1 + 1 / 0.75) / 0.75, rtol=1e-6)
    assert jax.grad(sp.expn, 0)(2.0, 0.75) == 0
    # The phase of a large argument is exact: x^2 / 2 = 2^21 + 2^11 + 1/2.
    np.testing.assert_allclose(jax.grad(lambda x: sp.fresnel(x)[0])(2049.0), np.sin(np.pi / 2 * (2049**2 % 4)), rtol=1e-5)


# ---------------------------------------------------------------- hypergeometric functions


@pytest.mark.ours
@pytest.mark.parametrize(
    "name, points",
    [("hyp1f1", [(1.5, 2.5, 0.75), (1.5, 2.5, -4.0), (-0.5, 1.25, 20.0), (0.75, 1.5, 120.0), (2.5, 0.5, -120.0)]),
     ("hyp2f1", [(1.5, 2.5, 0.75, 0.25), (1.5, 0.25, 3.5, -4.0), (0.5, 0.25, 2.5, 0.96875), (1.5, 1.25, 0.75, 0.75), (0.5, 0.75, 2.5, -0.125)])],
)  # fmt: skip
def test_slopes_of_hypergeometric_functions(jax, jnp, x64, name, points):
    f = getattr(jax.scipy.special, name)
    for point in points:
        slopes = jax.grad(f, tuple(range(len(point))))(*point)
        np.testing.assert_allclose(jax.jacfwd(f, tuple(range(len(point))))(*point), slopes, rtol=1e-10)
        for i, slope in enumerate(slopes):
            step = 1e-5 * max(1, abs(point[i])) if point[i] < 0.9 or i < len(point) - 1 else 1e-7
            moved = lambda s, i=i, point=point, step=step: [v + s * step * (j == i) for j, v in enumerate(point)]
            np.testing.assert_allclose(slope, (f(*moved(1)) - f(*moved(-1))) / (2 * step), rtol=1e-5)


@pytest.mark.ours
def test_hypergeometric_functions_at_the_ends(jax, jnp):
    sp = jax.scipy.special
    np.testing.assert_array_equal(
        sp.hyp1f1(1.0, jnp.array([0.0, -2.0, 2.0, 2.0, nan, 2.0]), jnp.array([3.0, 3.0, inf, -inf, 1.0, nan])), [inf, inf, inf, 0, nan, nan]
    )
    np.testing.assert_array_equal(sp.hyp1f1(0.0, jnp.array([0.0, -2.0]), 3.0), 1)
    np.testing.assert_allclose(sp.hyp1f1(-1.0, -2.0, 3.0), 2.5)
    c, x = jnp.array([3.0, 4.0, 4.0, -4.0, 4.0, nan]), jnp.array([1.0, 1.5, inf, 0.5, nan, 0.5])
    np.testing.assert_array_equal(sp.hyp2f1(1.0, 2.0, c, x), [inf, inf, inf, inf, nan, nan])
    np.testing.assert_array_equal(sp.hyp2f1(jnp.array([1.0, 0.0]), 2.0, 4.0, 0.0), 1)


# ---------------------------------------------------------------- Bessel functions and harmonics


@pytest.mark.ours
def test_bessel_functions(jax, jnp):
    jn = jax.scipy.special.bessel_jn
    assert jn(jnp.ones((2, 3)), v=2).shape == (3, 2, 3) and jn(1, v=0).dtype == "float32" and jn(jnp.ones(2, "float16"), v=1).dtype == "float16"
    np.testing.assert_array_equal(jn(jnp.array([0.0, inf, nan]), v=2), [[1, 0, nan], [0, 0, nan], [0, 0, nan]])
    z = jnp.array([-2.0, 0.0, 0.5, 30.0, 300.0])
    slope = jax.jvp(lambda z: jn(z, v=3), (z,), (jnp.ones(5),))[1]
    np.testing.assert_allclose(slope[0], -jn(z, v=1)[1], atol=1e-6)
    np.testing.assert_allclose(slope[2], (jn(z, v=3)[1] - jn(z, v=3)[3]) / 2, atol=1e-6)
    np.testing.assert_allclose(jax.vmap(lambda z: jn(z, v=3, n_iter=9))(z), jn(z, v=3).T, rtol=1e-6)
    np.testing.assert_array_equal(jax.jit(lambda z: jn(z, v=3))(z), jn(z, v=3))
    np.testing.assert_allclose(jax.hessian(lambda z: jn(z, v=0)[0])(1.5), jn(1.5, v=1)[1] / 1.5 - jn(1.5, v=0)[0], rtol=1e-5)
    for bad in (2.0, None):
        with pytest.raises(TypeError):
            jn(1.0, v=bad)
    with pytest.raises(ValueError, match="must not be negative"):
        jn(1.0, v=-1)


@pytest.mark.ours
def test_spherical_harmonics(jax, jnp):
    y = jax.scipy.special.sph_harm_y
    n, m = jnp.array([1, 2, 3]), jnp.array([[2], [0], [-3]])
    out = y(n, m, 0.5, 0.25)
    assert out.shape == (3, 3) and out.dtype == "complex64" and (np.asarray(out)[0, 0] == 0)
    np.testing.assert_allclose(jax.jit(lambda *a: y(*a, n_max=3))(n, m, 0.5, 0.25), out, rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(y(n, 0, 0.5, 0.25, n_max=2)), [False, False, True])
    assert np.isnan(y(-1, 0, 0.5, 0.25))
    # The derivative in the azimuth is a factor i m; that in the polar angle is DLMF 14.10.5's.
    slope = jax.jvp(lambda p: y(n, m, 0.5, p), (0.25,), (1.0,))[1]
    np.testing.assert_allclose(slope, 1j * m * out, rtol=1e-5, atol=1e-6)
    secant = (y(n, m, 0.51, 0.25) - y(n, m, 0.49, 0.25)) / 0.02
    np.testing.assert_allclose(jax.jvp(lambda t: y(n, m, t, 0.25), (0.5,), (1.0,))[1], secant, atol=2e-3)
    with pytest.raises(NotImplementedError, match="The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported."):
        y(n, m, 0.5, 0.25, 1)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="must be statically specified"):
        jax.jit(y)(n, m, 0.5, 0.25)
    with pytest.raises(TypeError, match="degrees and orders must be of integer type, got float32."):
        y(1.0, 0, 0.5, 0.25)


# ---------------------------------------------------------------- arguments

REAL = {"erfcx": 1, "dawsn": 1, "log_ndtr": 1, "owens_t": 2, "expi": 1, "exp1": 1, "expn": 2, "sici": 1, "fresnel": 1, "spence": 1, "hyp1f1": 3, "hyp2f1": 4}


@pytest.mark.ours
@pytest.mark.parametrize("name", list(REAL))
def test_dtypes_and_transforms(jax, jnp, name):
    f, n = getattr(jax.scipy.special, name), REAL[name]
    leaf = lambda y: jax.tree_util.tree_leaves(y)[0]
    assert leaf(f(*[jnp.ones(2, "int8")] * n)).dtype == "float32" and leaf(f(*[jnp.ones(2, "float16")] * n)).dtype == "float16"
    assert leaf(f(*[jnp.ones((0,))] * n)).shape == (0,)
    xs = [jnp.array([0.25, 0.5, 1.5])] * n
    for got in (jax.jit(f)(*xs), jax.vmap(f)(*xs)):
        np.testing.assert_allclose(leaf(got), leaf(f(*xs)), rtol=1e-6)
    assert leaf(f(xs[0][:, None], *xs[1:])).shape == ((3, 3) if n > 1 else (3, 1))
    if name in ("expn", "hyp1f1"):
        assert f([1.0], *[1.0] * (n - 1)).shape == (1,)
    else:
        with pytest.raises(TypeError, match=f"{name} requires ndarray or scalar arguments, got <class 'list'> at position 0."):
            f([1.0], *[1.0] * (n - 1))
    if name != "erfcx":
        with pytest.raises((TypeError, ValueError, NotImplementedError), match="complex"):
            f(1j, *[1.0] * (n - 1))


IN_HALVES = {
    "erfcx": 1, "log_ndtr": 1, "dawsn": 1, "owens_t": 2, "exp1": 1, "expi": 1, "expn": 2, "sici": 1, "fresnel": 1, "spence": 1, "hyp1f1": 3, "hyp2f1": 4, "gamma": 1,
    "factorial": 1, "comb": 2, "poch": 2, "beta": 2, "betaln": 2, "zeta": 2, "ndtr": 1, "ndtri": 1, "boxcox": 2, "boxcox1p": 2, "i0": 1, "i0e": 1, "i1": 1, "i1e": 1,
}  # fmt: skip


@pytest.mark.ours
@pytest.mark.parametrize("name", IN_HALVES)
def test_half_precision_is_single_rounded_once(jax, name):
    """Step by step erfcx(5) is exp(25), infinite in float16, times 0; log_ndtr(-5) and expi(12) are infinite. So are derivatives."""
    f, count = getattr(jax.scipy.special, name), IN_HALVES[name]
    points = np.array([-20, -6, -3.5, -1, -0.1, 0, 0.001, 0.1, 0.5, 0.9, 1, 2, 4, 5, 9, 11.5, 12, 30, 100, 300])
    for dtype in (np.float16, jax.numpy.bfloat16):
        x, rest = points.astype(dtype), [np.asarray(v, dtype) for v in (2.0, 1.5, 0.7)[: count - 1]]
        parts = lambda y: y if isinstance(y, tuple) else (y,)
        with np.errstate(over="ignore"):
            for of in (f, lambda *xs: jax.jvp(f, xs[:1], (jax.numpy.ones_like(xs[0]),))[1] if count == 1 else f(*xs)):
                wide = parts(of(*[v.astype(np.float32) for v in (x, *rest)]))
                for got, want in zip(parts(of(x, *rest)), wide, strict=True):
                    assert got.dtype == dtype
                    np.testing.assert_array_equal(np.asarray(got, float), np.asarray(want).astype(dtype).astype(float))


def test_the_quantile_outside_of_probabilities_has_no_derivative(jax):
    assert np.isnan(jax.vmap(jax.grad(jax.scipy.special.ndtri))(np.array([-0.5, 1.5], np.float32))).all()


def second_derivatives(jax, f):
    """Those of f by its two arguments, as functions of arrays of points: each mode over reverse mode, and reverse mode over the forward one."""
    n = (0, 1)
    ways = ((jax.jacfwd, jax.grad), (jax.jacrev, jax.grad), (jax.jacrev, jax.jacfwd))
    return [jax.jit(jax.vmap(outer(inner(f, n), n))) for outer, inner in ways]


def points(*sides):
    return [v.ravel() for v in np.meshgrid(*sides)]


@pytest.mark.ours
def test_powers_have_all_second_derivatives_at_whole_exponents(jax, jnp, x64):
    x, y = points([0.5, 1.0, 2.0, 300.0], [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0])
    mixed = x ** (y - 1) * (1 + y * np.log(x))
    want = [[y * (y - 1) * x ** (y - 2), mixed], [mixed, x**y * np.log(x) ** 2]]
    for f in (jnp.power, jax.lax.pow, jnp.float_power, lambda x, y: jnp.power(jnp.full(3, x), y).mean(), lambda x, y: jnp.power(x, jnp.full(3, y)).mean()):
        for hessian in second_derivatives(jax, f):
            np.testing.assert_allclose(np.array(hessian(x, y)), want, rtol=1e-9, atol=1e-12)
    assert jax.grad(jnp.power)(0.0, 0.0) == 0


@pytest.mark.ours
def test_incomplete_gamma_and_beta_have_all_second_derivatives_at_whole_orders(jax, jnp, x64):
    sp = jax.scipy.special
    a, x = points([0.5, 1.0, 2.0, 3.0, 4.0, 12.0], [0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 20.0])
    for sign, f in ((1, sp.gammainc), (-1, sp.gammaincc)):
        density = sign * np.exp((a - 1) * np.log(x) - x - sp.gammaln(a))
        mixed = density * (np.log(x) - sp.digamma(a))
        slope = jax.vmap(jax.grad(f))
        by_order = (slope(a + 1e-5, x) - slope(a - 1e-5, x)) / 2e-5
        want = [[by_order, mixed], [mixed, density * ((a - 1) / x - 1)]]
        for hessian in second_derivatives(jax, f):
            np.testing.assert_allclose(np.array(hessian(a, x)), want, rtol=1e-7, atol=1e-9)
    a, b, x = points([0.5, 1.0, 2.0, 3.0, 12.0], [0.5, 1.0, 2.0, 3.0, 12.0], [0.1, 0.5, 0.9])
    density = np.exp((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - sp.betaln(a, b))
    for hessian in (jax.jacfwd(jax.grad(sp.betainc, (0, 1, 2)), (0, 1, 2)), jax.jacrev(jax.grad(sp.betainc, (0, 1, 2)), (0, 1, 2))):
        got = jax.jit(jax.vmap(hessian))(a, b, x)
        for k, mixed in ((0, density * (np.log(x) + sp.digamma(a + b) - sp.digamma(a))), (1, density * (np.log1p(-x) + sp.digamma(a + b) - sp.digamma(b)))):
            np.testing.assert_allclose([got[k][2], got[2][k]], [mixed] * 2, rtol=1e-7, atol=1e-9)


@pytest.mark.ours
def test_the_derivatives_of_spence_at_1(jax, x64):
    f, want = jax.scipy.special.spence, [-1, 1 / 2, -2 / 3, 3 / 2, -24 / 5]
    for value in want:
        f = jax.grad(f)
        np.testing.assert_allclose([f(1.0), f(1.0 + 1e-9)], value, rtol=1e-7)


def test_the_dimension_of_multigammaln_is_an_integer(jax):
    f = jax.scipy.special.multigammaln
    for d in (1, 2, 3):
        assert float(f(5.0, d)) == float(f(5.0, d + 0.5)) == float(f(5.0, np.float32(d + 0.9)))


ENTROPIES = {  # the function, its second derivatives by (0, 0), (0, 1) and (1, 1), all of numbers x and y as powers of 2 that floats of any width represent
    "xlogy": lambda x, y: (0, 1 / y, -x / y**2),
    "xlog1py": lambda x, y: (0, 1 / (1 + y), -x / (1 + y) ** 2),
    "rel_entr": lambda x, y: (1 / x, -1 / y, x / y**2),
    "kl_div": lambda x, y: (1 / x, -1 / y, x / y**2),
}


@pytest.mark.ours
@pytest.mark.parametrize("name", ENTROPIES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_second_derivatives_of_entropies_near_the_ends_of_the_range(jax, jnp, x64, dtype, name):
    """No square of an argument leaves the range where the derivative does not."""
    from fractions import Fraction

    info = jnp.finfo(dtype)
    low, high = Fraction(float(info.tiny)), Fraction(float(info.max) // 2)
    f, kept = getattr(jax.scipy.special, name), 0
    # of half precision computed in single, the range is that of half
    for x in (low * 4, low * 2**9, Fraction(1, 8), Fraction(2), high / 2**9, high / 4):
        for y in (x, 2 * x, x / 2, Fraction(1, 4), Fraction(3)):
            at = [jnp.asarray(float(v), dtype) for v in (x, y)]
            exact = [Fraction(float(v)) for v in at]
            wants = ENTROPIES[name](*exact)
            grads = [jax.grad(jax.grad(f, i), k) for i, k in ((0, 0), (0, 1), (1, 1))]
            for want, grad in zip(wants, grads, strict=True):
                if want != 0 and not low < abs(want) < high:
                    continue
                for got in (grad(*at), jax.jit(grad)(*at), jax.vmap(grad)(*(v[None] for v in at))[0]):
                    assert got.dtype == dtype
                    assert abs(Fraction(float(got)) - want) <= abs(want) * Fraction(float(8 * info.eps)), (x, y, want, got)
                    kept += 1
    assert kept > 100


@pytest.mark.ours
def test_entropy_and_divergence_have_derivatives_at_the_least_and_greatest_numbers(jax, jnp, x64):
    sp = jax.scipy.special
    for dtype in ("float32", "float64"):
        for x in (float(jnp.finfo(dtype).tiny) * 4, float(jnp.finfo(dtype).max) / 4):
            x, rtol = jnp.asarray(x, dtype), 4 * float(jnp.finfo(dtype).eps)
            np.testing.assert_allclose(jax.grad(jax.grad(sp.entr))(x), -1 / x, rtol=rtol)
            np.testing.assert_allclose(jax.grad(sp.entr)(x), -(jnp.log(x) + 1), rtol=rtol)
            np.testing.assert_allclose(jax.grad(sp.rel_entr, (0, 1))(x, 2 * x), (1 - np.log(2), -0.5), rtol=rtol)
            np.testing.assert_allclose(jax.grad(sp.kl_div, (0, 1))(x, 2 * x), (-np.log(2), 0.5), rtol=rtol)
            # a quotient that leaves the range
            np.testing.assert_allclose(sp.rel_entr(x / x, x * 0 + jnp.finfo(dtype).tiny), -np.log(float(jnp.finfo(dtype).tiny)), rtol=rtol)
            low, high = (jnp.asarray(float(v), dtype) for v in (jnp.finfo(dtype).tiny, jnp.finfo(dtype).max))
            np.testing.assert_allclose(jax.grad(sp.rel_entr)(high, low), jnp.log(high) - jnp.log(low) + 1, rtol=rtol)
    assert np.isnan(sp.rel_entr(nan, 1.0)) and np.isnan(sp.rel_entr(1.0, nan)) and np.isnan(sp.kl_div(nan, 1.0))


@pytest.mark.ours
def test_second_derivatives_of_log_ndtr(jax, jnp, x64):
    """-s (s + x) of the slope s: -1 far below 0, where s + x cancels, and 0 far above, where s underflows."""
    second = jax.grad(jax.grad(jax.scipy.special.log_ndtr))
    for dtype, rtol in (("float32", 1e-5), ("float64", 1e-12)):
        for x in (-1e30, -1e20, -1e5, -1e4):
            np.testing.assert_allclose(second(jnp.asarray(x, dtype)), -1 + 1 / x**2, rtol=rtol)
        for x in (40.0, 1e3, 1e30, inf):
            assert second(jnp.asarray(x, dtype)) == 0
    x = np.linspace(-40, 12, 200)
    np.testing.assert_allclose(jax.vmap(second)(x.astype("float32")), jax.vmap(second)(x.astype("float32").astype(float)), rtol=1e-4, atol=1e-37)
    # where the two formulas meet
    mills = lambda x: jax.grad(jax.scipy.special.log_ndtr)(x)
    for x in (-7.1, -7.0, -3.0, 0.0, 2.0):
        np.testing.assert_allclose(second(x), (mills(x + 1e-5) - mills(x - 1e-5)) / 2e-5, rtol=1e-8)
