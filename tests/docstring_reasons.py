"""Why an example in a docstring prints something else here than on JAX, by the docstring's name; those of NumPy and SciPy stand behind their package's name."""

FREE = "the decomposition is not unique: both are right, and multiply back"
ROUNDING = "what is left by rounding: zero but for that, or a number on the edge of a bin"
SINGULAR = "the matrix is singular but for rounding"
INEXACT = "JAX is less exact here"

REASONS = {
    # docs/differences-from-jax.md
    "jax.errors.NonConcreteBooleanIndexError": "an update at a traced mask is answered",
    "jax.lax.nextafter": "subnormal numbers are kept",
    "numpy: jax.numpy.linalg.vector_norm": "a norm of integers is a float",
    "scipy: jax.scipy.special.expn": "JAX is wrong at 0: En(0) = 1 / (n - 1)",
    "scipy: jax.scipy.special.hyp1f1": "infinite where b is -1, as SciPy has it; JAX gives 1",
    # otherwise
    "jax.debug.inspect_array_sharding": "the sharding is printed when the program runs, not when it is compiled",
    "jax.export.Exported.in_shardings_jax": "a sharding over one device is not recorded",
    "jax.export.export": "`jnp.sin` is a function, not the result of `jit`",
    "jax.numpy.linalg.multi_dot": "the work of a product is counted in multiply-adds",
    "jax.numpy.polyadd": "both refuse; the words differ",
    "jax.numpy.polysub": "both refuse; the words differ",
    "numpy: jax.numpy.append": "both refuse; the function that is named is the one that was called",
    "jax.vmap": "an unmapped result is an array, not the Python number that it was computed from",
    "numpy: jax.numpy.conj": "aliases are one object",
    "numpy: jax.numpy.invert": "aliases are one object",
    "numpy: jax.numpy.left_shift": "prints the class's own name",
    # numbers
    "jax.numpy.arctan2": ROUNDING,
    "jax.numpy.histogram": ROUNDING,
    "jax.numpy.linalg.eigh": FREE,
    "jax.scipy.linalg.eigh": FREE,
    "jax.scipy.linalg.rsf2csf": FREE,
    "jax.scipy.linalg.schur": FREE,
    "numpy: jax.numpy.linalg.eigh": FREE,
    "scipy: jax.scipy.linalg.schur": FREE,
    "scipy: jax.scipy.linalg.lu_solve": ROUNDING,
    "numpy: jax.numpy.linalg.inv": SINGULAR,
    "numpy: jax.numpy.linalg.matrix_norm": SINGULAR,
    "numpy: jax.numpy.linalg.norm": SINGULAR,
    "scipy: jax.scipy.linalg.invpascal": INEXACT,
    "scipy: jax.scipy.linalg.qr_multiply": INEXACT,
    "scipy: jax.scipy.linalg.solve": INEXACT,
}
