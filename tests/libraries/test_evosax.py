"""evosax: evolution strategies on test functions, for populations and distributions, fitness shaping."""

import jax
import jax.numpy as jnp
import pytest
from evosax.algorithms import algorithms
from evosax.algorithms.distribution_based import cma_es
from evosax.algorithms.population_based.base import PopulationBasedAlgorithm
from evosax.problems import BBOBProblem
from outcomes import Programs

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
    if isinstance(algorithm, PopulationBasedAlgorithm):
        state = algorithm.init(K, population, fitness(population), params)
    else:
        state = algorithm.init(K, solution, params)

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
    for name in "Open_ES SimpleES CMA_ES Sep_CMA_ES SNES xNES ARS PGPE GuidedES MR15_GA SimpleGA DifferentialEvolution PSO GLD SimAnneal LES CR_FM_NES".split():
        if name in algorithms:
            t(name, lambda name=name: minimized(name))
    for name in ("sphere", "rastrigin", "ellipsoidal", "rosenbrock"):

        def program(name=name):
            problem = BBOBProblem(fn_name=name, num_dims=2, seed=0)
            state = problem.init(K)
            return problem.eval(K, jax.random.normal(K, (3, 2)), state)[0]

        t("bbob " + name, program)

    def random_search():
        solution = jnp.zeros(3)
        algorithm = algorithms["RandomSearch"](8, solution, lambda key: jax.random.uniform(key, (3,)))
        params = algorithm.default_params
        population = jax.random.normal(K, (8, 3))
        state = algorithm.init(K, solution, params)
        population, state = algorithm.ask(K, state, params)
        return population, algorithm.tell(K, population, (population**2).sum(-1), state, params)[1]["best_fitness"]

    t("RandomSearch", random_search)
    t("names", lambda: sorted(algorithms)[:5])


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_evosax(name):
    PROGRAMS.check(name)
