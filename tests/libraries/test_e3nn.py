"""e3nn-jax: irreducible representations, spherical harmonics, tensor products, equivariant layers."""

import e3nn_jax as e3nn
import flax.linen
import jax
import jax.numpy as jnp
import pytest
from outcomes import Programs

K = jax.random.key(0)


def programs(t):
    t("irreps", lambda: [str(e3nn.Irreps("2x0e+1x1o+3x2e").simplify()), e3nn.Irreps("2x0e+1x1o").dim])
    t("sort", lambda: str(e3nn.Irreps("1o+0e+2e").sort().irreps))
    x = e3nn.normal("2x0e+1x1o+1x2e", K, (3,))
    y = e3nn.normal("1x0e+1x1o", jax.random.key(1), (3,))
    v = jax.random.normal(K, (4, 3))
    t("normal", lambda: x.array)
    for n in (False, True):
        t(f"harmonics {n}", lambda n=n: e3nn.spherical_harmonics("0e+1o+2e+3o", v, n).array)
    t("harmonics grad", lambda: jax.jacrev(lambda v: e3nn.spherical_harmonics(2, e3nn.IrrepsArray("1o", v), True).array)(v[0]))
    t("harmonics at zero", lambda: jax.grad(lambda v: e3nn.spherical_harmonics("0e+1o+2e", v, False).array.sum())(jnp.zeros(3)))
    t("product", lambda: e3nn.tensor_product(x, y).array)
    t("product filtered", lambda: e3nn.tensor_product(x, y, filter_ir_out="0e+1o").array)
    t("product irreps", lambda: str(e3nn.tensor_product("1o", "1o")))
    t("elementwise", lambda: e3nn.elementwise_tensor_product(y, y).array)
    t("square", lambda: e3nn.tensor_square(x).array)
    t("cg", lambda: e3nn.clebsch_gordan(1, 1, 2))
    t("reduced", lambda: [str(e3nn.reduced_tensor_product_basis("ij=ji", i="1o").irreps), e3nn.reduced_tensor_product_basis("ij=ji", i="1o").array])
    t("symmetric", lambda: str(e3nn.reduced_symmetric_tensor_product_basis("1o", 2).irreps))
    t("norm", lambda: (e3nn.norm(x).array, jax.grad(lambda a: e3nn.norm(e3nn.IrrepsArray("1o", a)).array.sum())(jnp.zeros(3))))
    t("dot", lambda: e3nn.dot(x, x).array)
    t("cross", lambda: e3nn.cross(y.filter("1o"), y.filter("1o")).array)
    t("sum", lambda: (e3nn.sum(x).array, e3nn.mean(x, axis=0).array))
    t("concatenate", lambda: [e3nn.concatenate([x, y]).array, str(e3nn.concatenate([x, y]).irreps)])
    t("index", lambda: (x[1].array, x[..., "2e"].array, x.slice_by_mul[1:].array))
    t("at", lambda: x.at[0].set(x[1]).array)
    t("chunks", lambda: x.chunks)
    t("arithmetic", lambda: ((x + x).array, (2 * x).array, (x / 3).array, (-x).array, (x - 0.5 * x).array))
    D = e3nn.rand_matrix(K, ())
    t("rotation", lambda: D)
    t("wigner", lambda: e3nn.Irrep("2e").D_from_angles(0.1, 0.2, 0.3))
    t("transform", lambda: x.transform_by_matrix(D).array)
    t("axis angle", lambda: x.transform_by_axis_angle(jnp.array([0.0, 1.0, 0.0]), 0.4).array)
    t("quaternion", lambda: e3nn.matrix_to_quaternion(D))
    t("angles", lambda: e3nn.matrix_to_angles(D))
    t(
        "equivariance",
        lambda: (
            jnp.abs(
                e3nn.tensor_product(x, y).transform_by_matrix(D).array - e3nn.tensor_product(x.transform_by_matrix(D), y.transform_by_matrix(D)).array
            ).max()
            < 1e-3
        ),
    )
    t("activation", lambda: (e3nn.scalar_activation(y, [jax.nn.tanh, None]).array, e3nn.norm_activation(y, [None, jax.nn.silu]).array))
    t("gate", lambda: e3nn.gate(e3nn.normal("3x0e+1x0e+1x1o", K)).array)
    t("normalize function", lambda: e3nn.normalize_function(jax.nn.relu)(jnp.array([-1.0, 1.0])))
    t("radial", lambda: (e3nn.bessel(jnp.linspace(0.1, 1, 4), 3), e3nn.soft_envelope(jnp.linspace(0, 1.2, 4)), e3nn.poly_envelope(5, 2)(jnp.linspace(0, 1, 4))))
    t("soft one hot", lambda: e3nn.soft_one_hot_linspace(jnp.linspace(0, 2, 5), start=0.0, end=2.0, number=4, basis="smooth_finite", cutoff=True))
    t("sus", lambda: jax.vmap(jax.grad(e3nn.sus))(jnp.array([-1.0, 0.0, 0.5])))
    t("bessel grad at zero", lambda: jax.grad(lambda r: e3nn.bessel(r, 3).sum())(0.0))
    t("vmap", lambda: e3nn.vmap(lambda a: e3nn.norm(a))(x).array)
    t("tree", lambda: len(jax.tree.leaves(x)))
    t("jit", lambda: jax.jit(lambda x: e3nn.tensor_square(x))(x).array)
    t("grad", lambda: e3nn.grad(lambda x: e3nn.norm(x))(e3nn.IrrepsArray("1o", v[0])).array)
    t("s2 grid", lambda: e3nn.to_s2grid(e3nn.IrrepsArray("0e+1o", jnp.arange(4.0)), 6, 5, quadrature="soft", p_val=1, p_arg=-1).grid_values)
    t(
        "from s2",
        lambda: e3nn.from_s2grid(e3nn.to_s2grid(e3nn.IrrepsArray("0e+1o", jnp.arange(4.0)), 6, 5, quadrature="soft", p_val=1, p_arg=-1), "0e+1o").array,
    )
    t("scatter", lambda: e3nn.scatter_sum(x, dst=jnp.array([0, 1, 0]), output_size=2).array)
    t("regroup", lambda: e3nn.IrrepsArray("1o+0e+1o", jnp.arange(7.0)).regroup().array)
    t("filter", lambda: x.filter(keep="0e").array)
    t("mul to axis", lambda: x.mul_to_axis(1).array)
    t("zeros", lambda: e3nn.zeros_like(x).array)

    class Model(flax.linen.Module):
        @flax.linen.compact
        def __call__(self, x):
            x = e3nn.flax.Linear("4x0e+2x1o")(x)
            x = e3nn.flax.MultiLayerPerceptron([8, 4], jax.nn.silu)(x.filter("0e")), x
            return e3nn.concatenate([x[0], e3nn.tensor_square(x[1])]).regroup()

    def network():
        model = Model()
        params = model.init(K, x)
        out = model.apply(params, x)
        return out.array, jax.tree.leaves(jax.grad(lambda p: (model.apply(p, x).array ** 2).sum())(params))

    t("network", network)
    t("error", lambda: e3nn.IrrepsArray("1o", jnp.zeros(4)), raises=ValueError, why="1o has three components")
    t("add error", lambda: x + y, raises=ValueError, why="the irreps differ")


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_e3nn(name):
    PROGRAMS.check(name)
