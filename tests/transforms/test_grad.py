"""Derivatives that libraries of this kind got wrong, one test each.

Tests marked `ours` want a finite value where JAX 0.10.2 gives NaN, inf or an error; the rest holds on JAX too.
"""

import numpy as np
import pytest

ours = pytest.mark.ours


def test_slopes_at_numbers_are_weakly_typed_as_the_numbers_are(jax, jnp):
    two = np.float32(2)
    for f in (jnp.sin, jax.nn.relu, jax.jit(jnp.sin), lambda x: x * two, lambda x: (x * jnp.ones(3)).sum()):
        assert jax.grad(f)(0.7).weak_type and jax.jacrev(f)(0.7).weak_type and jax.jit(jax.grad(f))(0.7).weak_type
        assert not jax.grad(f)(np.float32(0.7)).weak_type
    assert jax.jacfwd(jnp.sin)(0.7).weak_type and jax.hessian(jnp.sin)(0.7).weak_type and not jax.jacfwd(jnp.sin)(np.float32(0.7)).weak_type
    assert [g.weak_type for g in jax.grad(lambda x, y: x * y, (0, 1))(0.7, two)] == [True, False]
    assert (jax.grad(lambda x: x * two)(0.7) * jnp.ones(2, "bfloat16")).dtype == "bfloat16"


# ---------------------------------------------------------------- poles that a mask or a product hides


@ours
def test_a_masked_square_root(jax, jnp, close):
    f = lambda x: jnp.where(x < 1, x, jnp.sqrt(x))
    close(jax.grad(f)(0.0), 1)
    close(jax.grad(jax.grad(f))(0.0), 0)


def test_a_dead_branch_under_vmap(jax, jnp, lax, close):
    f = lambda x: lax.cond(x > 0, jnp.sqrt, lambda x: x, x)
    close(jax.vmap(jax.grad(f))(jnp.array([-1.0, 4.0])), [1, 0.25])


@ours
def test_powers_at_zero(jax, jnp, close):
    grad = jax.grad
    close(grad(lambda x: x**0.0)(0.0), 0)
    close(grad(grad(lambda x: x**1.0))(0.0), 0)
    close(grad(lambda x, y: x**y, argnums=(0, 1))(0.0, 0.0), (0, 0))


def test_powers(jax, jnp, close):
    grad = jax.grad
    close(grad(lambda x: x**2)(0.0), 0)
    close(grad(lambda x: x**1.5)(0.0), 0)
    close(grad(grad(lambda x: x**2.0))(0.0), 2)
    close(grad(lambda y: jnp.float32(0.0) ** y)(2.0), 0)
    close(grad(lambda x: x**3.0)(-2.0), 12)


def test_a_masked_sum_of_exponentials(jax, jnp, close):
    logsumexp = jax.scipy.special.logsumexp
    close(jax.grad(lambda x: logsumexp(jnp.where(jnp.array([True, False]), x, -jnp.inf)))(jnp.array([1.0, 2.0])), [1, 0])


@ours
def test_angles_at_their_ends(jax, jnp):
    assert np.isfinite(jax.grad(jnp.arctan2, argnums=(0, 1))(0.0, 0.0)).all()


def test_arccos_at_one_is_infinite(jax, jnp):
    assert float(jax.grad(jnp.arccos)(1.0)) == -np.inf


# ---------------------------------------------------------------- kinks and ties


def test_ties_share(jax, jnp, close):
    close(jax.grad(jnp.max)(jnp.array([2.0, 2.0])), [0.5, 0.5])
    close(jax.grad(jnp.maximum, argnums=(0, 1))(1.0, 1.0), (0.5, 0.5))
    close(jax.grad(lambda x: jnp.clip(x, 0.0, 1.0))(0.0), 0.5)
    close(jax.grad(jnp.median)(jnp.array([3.0, 1.0, 2.0, 4.0])), [0.5, 0, 0.5, 0])


def test_kinks(jax, jnp, close):
    close(jax.grad(jax.nn.relu)(0.0), 0)
    close(jax.grad(jnp.abs)(0.0), 1)
    close(jax.grad(jnp.abs)(jnp.complex64(0)), 0)


def test_sorting_ties_is_stable(jax, jnp, close):
    close(jax.grad(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(1.0, 4.0)))(jnp.array([1.0, 2.0, 0.5])), [2, 3, 1])
    close(jax.grad(lambda x: jnp.sum(jnp.sort(x) * jnp.arange(1.0, 4.0)))(jnp.array([1.0, 1.0, 0.5])), [2, 3, 1])


# ---------------------------------------------------------------- products with zeros


@pytest.mark.parametrize("x, want", [([0.0, 2.0, 3.0], [6, 0, 0]), ([0.0, 0.0, 3.0], [0, 0, 0]), ([1.0, 2.0, 3.0], [6, 3, 2])])
def test_product_with_zeros(jax, jnp, close, x, want):
    close(jax.grad(jnp.prod)(jnp.array(x)), want)


def test_cumulative_product_with_a_zero(jax, jnp, close):
    close(jax.grad(lambda x: jnp.sum(jnp.cumprod(x)))(jnp.array([2.0, 0.0, 3.0])), [1, 8, 0])


# ---------------------------------------------------------------- gather and scatter


def test_set_with_an_index_twice_agrees_with_itself(jax, jnp, close):
    f = lambda u: jnp.zeros(2).at[jnp.array([0, 0])].set(u)
    u = jnp.array([1.0, 2.0])
    close(f(u), [2, 0])
    close(jax.grad(lambda u: f(u)[0])(u), [0, 1])


def test_max_and_mul_with_an_index_twice(jax, jnp, close):
    at = jnp.array([0, 0])
    close(jax.grad(lambda u: jnp.zeros(2).at[at].max(u)[0])(jnp.array([2.0, 2.0])), [0.5, 0.5])
    close(jax.grad(lambda x: jnp.sum(x.at[at].mul(jnp.array([2.0, 3.0]))))(jnp.ones(3)), [6, 1, 1])


def test_segment_sum_drops_negative_ids(jax, jnp, close):
    f = lambda x: jax.ops.segment_sum(x, jnp.array([0, -1]), 1)
    close(jax.jacrev(f)(jnp.array([1.0, 2.0])), [[1, 0]])


@ours
def test_forward_and_reverse_agree_out_of_bounds(jax, jnp, close):
    """The index 5 is clamped to 2 by the read, so the slope belongs to x[2]."""
    f = lambda x: x[jnp.array([0, 0, 5])]
    x = jnp.array([1.0, 2.0, 3.0])
    close(jax.jacfwd(f)(x).sum(0), [2, 0, 1])
    close(jax.jacrev(f)(x).sum(0), [2, 0, 1])


def test_clipped_indices(jax, jnp, close):
    f = lambda x: x.at[jnp.array([0, 0, 5])].get(mode="clip").sum()
    close(jax.grad(f)(jnp.array([1.0, 2.0, 3.0])), [2, 0, 1])


def test_an_index_in_the_middle_is_the_same_under_jit(jax, jnp):
    f = lambda x: jnp.sum(x[:, jnp.array([2, 0, 2]), :] ** 2)
    x = jnp.arange(24.0).reshape(2, 3, 4)
    assert np.array_equal(jax.grad(f)(x), jax.jit(jax.grad(f))(x))


@pytest.mark.parametrize("in_axis", [0, 1, 2, 3])
@pytest.mark.parametrize("out_axis", [0, 1, 2, 3])
def test_vmap_of_scatter_on_every_axis(jax, jnp, in_axis, out_axis):
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    f = lambda x: x.at[np.array([0, 2]) % x.shape[0], 1].add(10.0)
    got = jax.vmap(f, in_axes=in_axis, out_axes=out_axis)(x)
    want = np.stack([np.asarray(f(jnp.asarray(lane))) for lane in np.moveaxis(x, in_axis, 0)], out_axis)
    assert np.array_equal(got, want)


# ---------------------------------------------------------------- broadcasting, nesting, aliases


def test_gradients_of_broadcast_operands(jax, jnp, close):
    f = lambda z: jnp.sum(jnp.exp(z)) + jnp.sum(jnp.exp(z - jnp.zeros(1000)))
    close(jax.grad(f)(1.0), 1001 * np.e, 1e-3)
    g = jax.vmap(jax.grad(jnp.logaddexp), in_axes=(0, None))(jnp.arange(3.0), 1.0)
    assert g.shape == (3,)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "hypot", "arctan2", "power", "maximum", "fmax", "divide", "copysign", "remainder", "float_power"])
def test_gradients_have_the_shapes_of_operands_that_are_spread(jax, jnp, close, name):
    f = getattr(jnp, name)
    for a, b in [((1,), (2, 1)), ((2, 1), (1, 3)), ((1, 1), (2,)), ((), (1, 2)), ((2, 1), (2, 3))]:
        x, y = jnp.full(a, 1.5), jnp.full(b, 2.6)
        whole = np.broadcast_shapes(a, b)
        for argument, operand in enumerate((x, y)):
            slope = jax.grad(lambda x, y: jnp.sum(f(x, y)), argument)(x, y)
            assert slope.shape == operand.shape
            close(slope, np.full(operand.shape, np.prod(whole) / max(operand.size, 1) * float(jax.grad(f, argument)(1.5, 2.6))), 1e-5)


def test_nested_derivatives_are_not_confused(jax, close):
    close(jax.grad(lambda x: x * jax.grad(lambda y: x + y)(x))(5.0), 1)
    close(jax.jvp(lambda x: x * jax.jvp(lambda y: x * y, (x,), (1.0,))[1], (3.0,), (1.0,))[1], 6)


def test_an_output_that_is_an_input(jax, jnp, close):
    f = jax.jit(lambda x, y: (x, x * y))
    close(jax.grad(lambda x, y: sum(f(x, y)), argnums=(0, 1))(2.0, 3.0), (4, 2))


# ---------------------------------------------------------------- complex numbers


def test_the_complex_convention(jax, jnp, close):
    close(jax.grad(lambda x: x.imag**2)(jnp.complex64(2j)), -4j)
    close(jax.grad(lambda z: z**2, holomorphic=True)(jnp.complex64(1 + 1j)), 2 + 2j)


# ---------------------------------------------------------------- special values


def test_removable_singularities_and_saturation(jax, jnp, close):
    grad = jax.grad
    close(grad(jnp.sinc)(0.0), 0)
    close(grad(grad(jnp.sinc))(0.0), -(np.pi**2) / 3, 1e-4)
    close(grad(jnp.mod, argnums=(0, 1))(-5.0, 3.0), (1, 2))
    close(grad(jax.nn.softplus)(1e4), 1)
    close(grad(jax.nn.log_sigmoid)(-1e4), 1)
    close(grad(jnp.tanh)(100.0), 0)


# ---------------------------------------------------------------- loops


def test_custom_jvp_around_a_while_loop_has_a_reverse(jax, jnp, lax, close):
    @jax.custom_jvp
    def root(a):
        return lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-5, lambda x: 0.5 * (x + a / x), jnp.float32(1.0))

    @root.defjvp
    def root_jvp(primals, tangents):
        y = root(*primals)
        return y, tangents[0] / (2 * y)

    close(jax.grad(root)(jnp.float32(4.0)), 0.25, 1e-4)


# ---------------------------------------------------------------- infinite arguments


@ours
def test_the_direction_of_an_infinite_complex_number(jax, jnp, close):
    slope = jax.grad(jnp.abs)
    inf, nan, half = np.inf, np.nan, np.sqrt(0.5)
    for z, want in {complex(inf, 0): 1, complex(-inf, 3): -1, complex(2, inf): -1j, complex(-inf, inf): complex(-half, -half)}.items():
        for f in (slope, jax.jit(slope), lambda z: jax.vmap(slope)(z[None])[0]):
            close(f(jnp.complex64(z)), want)
    assert np.isnan(slope(jnp.complex64(complex(nan, 0))))


def test_the_direction_of_a_finite_complex_number(jax, jnp, close):
    slope = jax.grad(jnp.abs)
    for z in (3 - 4j, 1e30 + 1e30j, 1e-30 - 1e-30j):
        close(slope(jnp.complex64(z)), np.conj(z) / abs(z))
    close(slope(jnp.complex64(0)), 0)


@ours
def test_minus_infinity_has_no_share_in_a_sum_of_exponentials(jax, jnp, close):
    for f in (jnp.logaddexp, jnp.logaddexp2):
        close(jax.grad(f, argnums=(0, 1))(-np.inf, -np.inf), (0, 0))


def test_shares_in_a_sum_of_exponentials(jax, jnp, close):
    for f in (jnp.logaddexp, jnp.logaddexp2):
        for x, y, want in ((-np.inf, 1.0, (0, 1)), (2.0, 2.0, (0.5, 0.5)), (1e4, 0.0, (1, 0))):
            close(jax.grad(f, argnums=(0, 1))(x, y), want)


@ours
def test_an_infinite_term_is_all_of_a_sum_of_exponentials(jax, jnp, close):
    """JAX gives the finite one of (inf, 1) a share of e."""
    for f in (jnp.logaddexp, jnp.logaddexp2):
        close(jax.grad(f, argnums=(0, 1))(np.inf, 1.0), (1, 0))


@pytest.mark.parametrize("aux", [lambda x: x, lambda x: [x**2, {"a": x}], lambda x: (), lambda x: [x.sum(), x.shape[0]]])
def test_auxiliary_output_of_every_derivative(jax, jnp, aux):
    """With `has_aux` the derivative is that of the first output, and the second comes back as it is, under jit too."""
    x, v = jnp.array([1.0, 2.0]), jnp.array([0.5, -1.0])
    scalar, with_aux = lambda x: (x**3).sum(), lambda x: ((x**3).sum(), aux(x))
    transforms = {
        "grad": (lambda f, **o: jax.grad(f, **o)(x)),
        "jacfwd": (lambda f, **o: jax.jacfwd(f, **o)(x)),
        "jacrev": (lambda f, **o: jax.jacrev(f, **o)(x)),
        "hessian": (lambda f, **o: jax.hessian(f, **o)(x)),
        "jvp": (lambda f, **o: (lambda r: (r[1], *r[2:]) if o else r[1])(jax.jvp(f, (x,), (v,), **o))),
        "linearize": (lambda f, **o: (lambda r: (r[1](v), *r[2:]) if o else r[1](v))(jax.linearize(f, x, **o))),
        "vjp": (lambda f, **o: (lambda r: (r[1](1.0), *r[2:]) if o else r[1](1.0))(jax.vjp(f, x, **o))),
    }
    for name, derivative in transforms.items():
        for run in (lambda f: f(), lambda f: jax.jit(f)()):
            expected = run(lambda derivative=derivative: derivative(scalar))
            got, other = run(lambda derivative=derivative: derivative(with_aux, has_aux=True))
            jax.tree_util.tree_map(lambda a, b: np.testing.assert_allclose(a, b, err_msg=name), got, expected)
            jax.tree_util.tree_map(lambda a, b: np.testing.assert_allclose(a, b, err_msg=name), other, aux(x))
