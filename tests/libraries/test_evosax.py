"""evosax: evolution strategies on test functions, for populations and distributions, fitness shaping."""

import evosax
import jax
import jax.numpy as jnp
import pytest
from evosax.algorithms import algorithms
from evosax.algorithms.distribution_based import cma_es
from evosax.problems import BBOBProblem
from outcomes import assert_agrees, cases, outcomes, stored

K = jax.random.key(0)
decompose = cma_es.eigen_decomposition


def signed(matrix):
    """The decomposition with the largest component of each eigenvector positive: CMA-ES draws along them, and nothing defines their signs."""
    matrix, vectors, scales = decompose(matrix)
    largest = jnp.take_along_axis(vectors, jnp.argmax(jnp.abs(vectors), 0, keepdims=True), 0)
    return matrix, vectors * jnp.sign(largest), scales


cma_es.eigen_decomposition = signed


def minimized(name, generations=4):
    solution = jnp.zeros(3)
    algorithm = algorithms[name](population_size=8, solution=solution)
    params = algorithm.default_params
    fitness = lambda x: jnp.sum((x - 0.5) ** 2, -1)
    population = jax.random.normal(K, (8, 3))
    if name in evosax.algorithms.population_based_algorithms if hasattr(evosax.algorithms, "population_based_algorithms") else False:
        state = algorithm.init(K, population, fitness(population), params)
    else:
        try:
            state = algorithm.init(K, solution, params)
        except TypeError:
            state = algorithm.init(K, population, fitness(population), params)

    @jax.jit
    def step(state, key):
        k1, k2 = jax.random.split(key)
        population, state = algorithm.ask(k1, state, params)
        state, metrics = algorithm.tell(k2, population, fitness(population), state, params)
        return state, metrics

    best = []
    for key in jax.random.split(K, generations):
        state, metrics = step(state, key)
        best.append(metrics["best_fitness"])
    return best


def programs(t):
    for name in "Open_ES SimpleES CMA_ES Sep_CMA_ES SNES xNES ARS PGPE GuidedES MR15_GA SimpleGA DifferentialEvolution PSO GLD SimAnneal RandomSearch LES CR_FM_NES".split():
        if name in algorithms:
            t(name, lambda name=name: minimized(name))
    for name in ("sphere", "rastrigin", "ellipsoidal", "rosenbrock"):

        def program(name=name):
            problem = BBOBProblem(fn_name=name, num_dims=2, seed=0)
            state = problem.init(K)
            return problem.eval(K, jax.random.normal(K, (3, 2)), state)[0]

        t("bbob " + name, program)
    t("names", lambda: sorted(algorithms)[:5])


OUTCOMES = outcomes(programs)


@pytest.mark.parametrize("name", cases(__file__, OUTCOMES))
def test_evosax(name):
    assert_agrees(OUTCOMES.get(name), stored(__file__).get(name))
