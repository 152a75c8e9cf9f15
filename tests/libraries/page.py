"""The table of libraries in docs/libraries.md, from the recorded programs and the pinned versions.

    python tests/libraries/page.py          # writes the table; tests/harness/test_library_recorder.py checks it

A row counts the programs that compute something of which all leaves are compared; those that end in the error that they announce; and of all of them
those that give something else on Ferrax, which are listed under the known limitations. All others agree, or their tests fail.
"""

import pathlib

from outcomes import KNOWN, counted

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "libraries.md"
MARK = "<!-- page.py -->\n"
HEAD = "| library | what for | version | programs | expected errors | differ |\n|---|---|---|---|---|---|\n"

# The library, what it is for, its distributions, its record.
LIBRARIES = [
    ("Optax", "optimizers, losses, schedules", "optax", "optax"),
    ("Flax, linen", "neural networks, as modules with separate parameters", "flax", "flax_linen"),
    ("Flax, nnx", "neural networks, as objects that hold their parameters", "flax", "flax_nnx"),
    ("Equinox", "neural networks and other models as trees", "equinox", "equinox"),
    ("Haiku", "neural networks, as functions with parameters", "dm-haiku", "haiku"),
    ("Keras, on its JAX backend", "neural networks: layers, fit, save and load", "keras", "keras"),
    ("Flax, Equinox, Optax, Orbax over eight devices", "models and optimizers in parts", "flax equinox optax orbax-checkpoint", "sharded"),
    ("Orbax", "checkpoints", "orbax-checkpoint", "orbax"),
    ("TensorStore, by `jax.experimental.array_serialization`", "arrays on disk", "tensorstore", "array_serialization"),
    ("PyTorch, its DataLoader", "batches for training; conversions by DLPack", "torch", "torch_data"),
    ("Lineax", "linear solvers and least squares", "lineax", "lineax"),
    ("Optimistix", "roots, minima, fixed points", "optimistix", "optimistix"),
    ("jaxopt", "optimization with implicit derivatives", "jaxopt", "jaxopt"),
    ("Diffrax", "ordinary, stochastic and controlled differential equations", "diffrax", "diffrax"),
    ("quadax", "integration", "quadax", "quadax"),
    ("interpax", "interpolation", "interpax", "interpax"),
    ("matfree", "linear algebra by products alone", "matfree", "matfree"),
    ("traceax", "traces of operators", "traceax", "traceax"),
    ("OTT", "optimal transport", "ott-jax", "ott"),
    ("NumPyro", "probabilistic programs: NUTS, variational inference", "numpyro", "numpyro"),
    ("BlackJAX", "samplers", "blackjax", "blackjax"),
    ("TensorFlow Probability, on JAX", "distributions, bijectors, samplers", "tfp-nightly", "tfp"),
    ("Distrax", "distributions and bijectors", "distrax", "distrax"),
    ("distreqx", "distributions and bijectors for Equinox", "distreqx", "distreqx"),
    ("flowjax", "normalizing flows", "flowjax", "flowjax"),
    ("GPJax", "Gaussian processes: kernels, objectives, training", "gpjax", "gpjax"),
    ("tinygp", "Gaussian processes", "tinygp", "tinygp"),
    ("dynamax", "state space models", "dynamax", "dynamax"),
    ("evosax", "evolution strategies", "evosax", "evosax"),
    ("RLax", "losses of reinforcement learning", "rlax", "rlax"),
    ("gymnax", "environments of reinforcement learning", "gymnax", "gymnax"),
    ("Flashbax", "replay buffers", "flashbax", "flashbax"),
    ("mctx", "search in trees", "mctx", "mctx"),
    ("MuJoCo MJX and Brax", "rigid bodies: rollouts and their gradients", "mujoco-mjx brax", "brax"),
    ("JAX MD", "molecular dynamics", "jax-md", "jax_md"),
    ("e3nn-jax", "networks that are equivariant under rotations", "e3nn-jax", "e3nn"),
    ("jraph", "graph networks", "jraph", "jraph"),
    ("jax-cosmo, NetKet, jaxlie", "cosmology, quantum states, rotations", "jax-cosmo netket jaxlie", "sciences"),
    ("PennyLane, its JAX interface", "quantum circuits", "pennylane", "pennylane"),
    ("scico", "reconstruction of images", "scico", "scico"),
    ("PyTensor, its JAX linker", "programs of symbolic arrays", "pytensor", "pytensor"),
    ("sympy2jax", "SymPy's expressions as functions", "sympy2jax", "sympy2jax"),
    ("Chex", "assertions, variants of tests, dataclasses", "chex", "chex"),
    ("jaxtyping", "shapes and dtypes in annotations", "jaxtyping", "jaxtyping"),
    ("einops", "rearranged axes", "einops", "einops"),
    ("SciPy, scikit-learn, array-api-compat", "functions of arrays of any library", "scikit-learn array-api-compat", "array_api"),
]


def versions():
    """The pinned version of each distribution."""
    lists = ("requirements.txt", "optional.txt", "alone.txt")
    return dict(line.split("==") for name in lists for line in (HERE / name).read_text().splitlines() if "==" in line)


def table():
    """The table."""
    pinned, rows, sums = versions(), "", [0, 0, 0]
    for title, purpose, distributions, record in LIBRARIES:
        numbers = [*counted(record), sum(library == record for library, _ in KNOWN)]
        sums = [a + b for a, b in zip(sums, numbers, strict=True)]
        rows += f"| {title} | {purpose} | {', '.join(pinned[d] for d in distributions.split())} | {' | '.join(str(n) if n else '' for n in numbers)} |\n"
    return f"{HEAD}{rows}| all | | | {' | '.join(map(str, sums))} |\n"


def with_table(text):
    """The page with the table as it should be."""
    before, _, after = text.split(MARK)
    return f"{before}{MARK}{table()}{MARK}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
