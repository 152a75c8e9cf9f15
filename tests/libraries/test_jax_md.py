"""JAX MD: spaces, energies, forces, minimization, integrators, neighbour lists, a graph network."""

import jax
import jax.numpy as jnp
import pytest
from jax_md import energy, interpolate, minimize, partition, quantity, simulate, smap, space
from outcomes import Programs

K = jax.random.key(0)
BOX = 4.0
R = jax.random.uniform(K, (12, 2)) * BOX
SPECIES = jnp.array([0, 1] * 6)


def programs(t):
    displacement, shift = space.periodic(BOX)
    metric = space.metric(displacement)
    t("displacement", lambda: space.map_product(displacement)(R[:3], R[:3]))
    t("metric", lambda: space.map_product(metric)(R, R)[0])
    t("shift", lambda: shift(R[:2], jnp.full((2, 2), 3.5)))
    free, freeshift = space.free()
    t("free", lambda: free(R[0], R[1]))
    general, gshift = space.periodic_general(jnp.array([[4.0, 0.5], [0.0, 4.0]]))
    t("general", lambda: general(R[0] / BOX, R[1] / BOX))
    t("general grad", lambda: jax.grad(lambda b: jnp.sum(general(R[0] / BOX, R[1] / BOX, box=b) ** 2))(jnp.array([[4.0, 0.5], [0.0, 4.0]])))
    energies = {
        "soft sphere": energy.soft_sphere_pair(displacement),
        "lennard jones": energy.lennard_jones_pair(displacement),
        "morse": energy.morse_pair(displacement),
        "species": energy.soft_sphere_pair(displacement, species=SPECIES, sigma=jnp.array([[1.0, 1.2], [1.2, 1.4]])),
        "bks-like": smap.pair(lambda dr, **_: jnp.exp(-dr) * (dr > 0), metric),
    }
    for name, f in energies.items():
        t(name, lambda f=f: f(R))
        t(name + " force", lambda f=f: quantity.force(f)(R))
        t(name + " hessian", lambda f=f: jax.jit(jax.hessian(f))(R)[0, 0])
    soft = energies["soft sphere"]
    t("pressure", lambda: quantity.pressure(soft, R, BOX))
    t("kinetic", lambda: quantity.temperature(velocity=R, mass=1.0))
    t("structure", lambda: quantity.pair_correlation(displacement, jnp.linspace(0.2, 1.5, 6), 0.1)(R)[0])
    t("cosine", lambda: quantity.cosine_angle_between_two_vectors(R[0], R[1]))
    t("bonds", lambda: energy.simple_spring_bond(displacement, jnp.array([[0, 1], [2, 3]]), length=jnp.array([1.0, 0.5]))(R))
    t("bond", lambda: smap.bond(lambda dr, **_: dr**2, metric, jnp.array([[0, 1]]))(R))

    def run(init, apply, steps, *args, state=None, **k):
        state = init(*args, **k)
        return jax.lax.fori_loop(0, steps, lambda i, s: apply(s), state)

    t("gradient descent", lambda: jax.jit(lambda: run(*minimize.gradient_descent(soft, shift, 0.05), 20, R))())
    t("fire", lambda: jax.jit(lambda: run(*minimize.fire_descent(soft, shift), 20, R).position)())
    for name, make in {
        "nve": lambda: simulate.nve(soft, shift, 1e-2),
        "nvt": lambda: simulate.nvt_nose_hoover(soft, shift, 1e-2, 0.5),
        "langevin": lambda: simulate.nvt_langevin(soft, shift, 1e-2, 0.5),
        "brownian": lambda: simulate.brownian(soft, shift, 1e-2, 0.5),
    }.items():

        def program(make=make, name=name):
            init, apply = make()
            more = {"kT": 0.5} if name in ("nve",) else {}
            return run(init, apply, 10, K, R, **more).position

        t(name, lambda program=program: jax.jit(program)())
    t(
        "nve grad",
        lambda: jax.jit(jax.grad(lambda s: run(*simulate.nve(energy.soft_sphere_pair(displacement, sigma=s), shift, 1e-2), 5, K, R, kT=0.1).position.sum()))(
            1.1
        ),
    )

    for fmt in ("Dense", "Sparse", "OrderedSparse"):

        def neighbours(fmt=fmt):
            neighbor_fn, energy_fn = energy.soft_sphere_neighbor_list(displacement, BOX, format=getattr(partition, fmt), dr_threshold=0.2)
            nbrs = neighbor_fn.allocate(R)
            nbrs = neighbor_fn.update(R + 0.01, nbrs)
            return energy_fn(R, neighbor=nbrs), nbrs.did_buffer_overflow, jax.grad(energy_fn)(R, neighbor=nbrs)

        t("neighbours " + fmt, neighbours)

    def cells():
        c = partition.cell_list(jnp.array([BOX, BOX]), 1.0)
        state = c.allocate(R)
        return jnp.sort(state.id_buffer.ravel())

    t("cells", cells)
    t("spline", lambda: interpolate.spline(jnp.array([0.0, 1.0, 4.0, 9.0]), 1.0)(jnp.array([0.5, 1.5, 2.5])))
    t("constant", lambda: interpolate.constant(3.0)(2))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_jax_md(name):
    PROGRAMS.check(name)
