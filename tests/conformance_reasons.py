"""Why a conformance case gives something else here than on JAX: (the case, what differs, the reason), the first two as regular expressions.

The first that matches is the reason; what docs/differences-from-jax.md says at length is said in a few words.
"""

DERIVATIVE = "JAX gives no derivative"
INEXACT = "JAX is less exact"
NUMPY = "as NumPy; JAX is wrong there"
REFUSED = "JAX refuses these operands"
WEAK = "whether a number from an integer array and Python's numbers is weakly typed varies by function in JAX"

REASONS = (
    # what JAX has no derivative for, and says so
    (r" jvp( x64)?$", r"answers, where JAX raises NotImplementedError", DERIVATIVE),
    (r"^jax\.lax\.composite.* jvp", r"answers, where JAX raises ValueError: JVP rule", DERIVATIVE),
    (r"^jax\.lax\.reduce: .* jvp", r"ad_util\.Zero", DERIVATIVE),
    (r"gumbel_r\.ppf: .* jvp", r"float0", "JAX's derivative fails where `loc` is an integer"),
    (r"^jax\.nn\.scaled_matmul", r"NotImplementedError", "JAX has none on CPUs"),
    (r"^jax\.lax\.pbroadcast", r"TypeError: take requires", "JAX fails under `vmap`"),
    (r"^jax\.numpy\.copy", r"NotImplementedError", "arrays have one order; others are accepted"),
    # dtypes that JAX refuses
    (r"^jax\.nn\.(silu|swish)", r"TypeError: logistic does not accept", "promotes integers, as the other activations do"),
    (
        r"^jax\.scipy\.(special|stats)",
        r"answers, where JAX raises TypeError: x\.dtype=\w+ is not supported",
        "promotes integers and half precision, as its neighbours do",
    ),
    (
        r"^jax\.scipy\.(special|stats)",
        r"answers, where JAX raises TypeError: .*does not accept dtype",
        "promotes integers and half precision, as its neighbours do",
    ),
    (r"argpartition|\.partition", r"answers, where JAX raises TypeError: neg does not accept dtype bool", "sorts booleans as other dtypes"),
    (r"(quantile|percentile)", r"answers, where JAX raises TypeError: lax\.mul requires", "promotes narrow floats and `q`"),
    (r"^jax\.lax\.bitcast_convert_type", r"answers, where JAX raises TypeError: .*does not support bool", REFUSED),
    (r"^jax\.lax\.dynamic_(update_)?slice", r"integers of the same type", "indices may be of several integer types"),
    (r"^jax\.lax\.custom_root", r"answers, where JAX raises ValueError: linearized function", "a weakly typed guess is taken"),
    (r"^jax\.lax\.random_gamma_grad", r"AttributeError", REFUSED),
    (r"^jax\.numpy\.u?int[24]:", r"answers, where JAX raises OverflowError", "numbers wrap, as arrays do"),
    # constants
    (r"linalg\.lstsq: .*numpy_resid=True.* jit", r"answers, where JAX raises TracerBoolConversion", "the rank need not be known"),
    (
        r" jit( x64)?$",
        r"answers, where JAX raises (Concretization|NonConcrete|TracerBoolConversion)",
        "an array that is made of known numbers is known under `jit`",
    ),
    (
        r"^jax\.lax\.(scan|custom_root|custom_linear_solve|composite)",
        r"^type: .*array \[\] \w+\*, not (int|float|TypedInt)",
        "a result is an array, not the Python number it was computed from",
    ),
    (r"^jax\.lax\.conv_.*shape_tuple", r"^type: ", "sizes are Python's integers"),
    # values
    (r"^jax\.numpy\.spacing: .*float16", r"^value", NUMPY),
    (r"^jax\.numpy\.(polyfit|linalg\.lstsq): .*x64", r"^type: .*array \[\] int32, not array \[\] int64", "a rank is of 32 bits, as NumPy's"),
    (r"\.(arc|a)cosh: .*a0=complex.* (jvp|grad)", r"^value", "JAX's derivative is the negative of it where the real part is negative"),
    (r"^jax\.numpy\.(nan)?std: .*a0=b?float16", r"^value.* not .*inf", INEXACT),
    (
        r"^(jax\.numpy\.u?int\d+|jax\.lax\.convert_element_type): .*a0=b?float",
        r"^value",
        "a float beyond the integer type, or NaN: such conversions have no meaning in JAX",
    ),
    (
        r"^jax\.lax\.ragged_dot(_general)?: ",
        r"^value: .*, not \[[^]]*nan",
        "rows meet the slices of their own groups; JAX multiplies the others by zero, infinities and NaN too",
    ),
    (
        r"^jax\.lax\.ragged_dot_general: ",
        r"^value: .*\[nan\], not \[-?inf\]",
        "a product of the greatest number is rounded to infinity before it is added; JAX fuses them",
    ),
    (r"^jax\.lax\.igamma_grad_a: ", r"^value: .*\[0\.\], not \[nan\]", "the limit, where JAX gives NaN"),
    (r"^jax\.(lax|scipy\.special)\.zeta: ", r"^value: .*, not \[[^]]*nan", "the limit, where JAX gives NaN"),
    (r"^jax\.lax\.betainc|special\.betainc", r"^value: .*\[0\.\], not \[1\.\]", NUMPY),
    (r"^jax\.lax\.approx_m(ax|in)_k", r"^value: .*nan", "NaN counts as the greatest, as in `top_k`"),
    (r"^jax\.(lax|scipy\.special)\.zeta: f\(a0, a1\) .* jvp", r"^value: (\[0\])?\[1\]", "a derivative where the function is NaN"),
    (
        r"^jax\.lax\.dynamic_slice: .*allow_negative_indices=\[False\]",
        r"answers, where JAX raises ValueError: Index -1",
        "moved inside, as an index that is not known",
    ),
    (
        r"^jax\.lax\.reduce_window: .*a0=uint",
        r"answers, where JAX raises TypeError: reduce_window got inconsistent dtypes",
        "Python's number takes the operand's dtype",
    ),
    (
        r"^jax\.lax\.reduce_window: .*'SAME'",
        r"^value",
        "what is padded is the initial value, as XLA's specification says; JAX on the CPU leaves it out",
    ),
    (r"special\.spence: .* jvp", r"^value: \[1\]\[0\] .*\[[^]]*(nan|inf)[^]]*\], not", "a derivative where the function is NaN, or has none"),
    (r"special\.kl_div: .* jvp", r"^value: \[1\]\[0\] .*e-08", INEXACT),
    (r"transform\.Slerp: .*x64", r"^type: .*float64, not array .*float32", "the dtype of times and rotations together"),
    (r"nn\.dot_product_attention: .*a0=float64.* x64", r"^value: .*\d", "weights are of single precision, as in JAX, and rounded elsewhere"),
    (r"nn\.dot_product_attention: .*query_seq_lengths", r"^value: .*\[0\..*, not \[nan", "queries beyond their length give zeros; JAX gives NaN"),
    (r"random\.multivariate_normal: .*dtype='float32'.*a0=float64", r"^type", "the dtype that is asked for"),
    (r"special\.bessel_jn: ", r"^value: .*, not \[nan", INEXACT),
    (r"special\.(expi|sici|exp1|poch|loggamma|expn|wofz): ", r"^value: .*, not \[[^]]*nan", "a limit, or a value of half precision, where JAX gives NaN"),
    (r"special\.loggamma: ", r"^value: .*\[0\.\], not \[4\.768\d+e-07\]", INEXACT),
    (r"special\.expn: .*a1=float16", r"^value: .*, not \[0\.", INEXACT),
    (r"special\.bernoulli: .* x64", r"^value", INEXACT),
    (r"special\.comb: ", r"^value: .*\[nan\], not \[0\.", "NaN among the arguments"),
    (r"special\.(poch|hyp2f1|hyp1f1|betainc|gammaincc?|zeta|owens_t): .* jvp", r"float0", DERIVATIVE),
    (r"special\.(owens_t|sph_harm_y)", r"^(type|structure): ", "the dtype of the operands; JAX takes the default"),
    (r"scipy\.fft\.i?dctn?: .*\b0\]", r"answers, where JAX raises TypeError: (slice limit_indices|broadcast_in_dim shape)", REFUSED),
    (r"^jax\.scipy\.signal", r"answers, where JAX raises NotImplementedError: .*Unsupported dtype", "half precision is taken"),
    (r"\.(unique\w*|union1d|intersect1d|setdiff1d|setxor1d): .* jvp", r"^value: \[1\]", "JAX gives zero; the elements that remain have a derivative"),
    (r"numpy\.angle: .*a0=float32\[\] .*x64", r"^type: .*, not array \[\] float64", "the operand's dtype; JAX takes the default for scalars"),
    (r"numpy\.array_(str|repr): ", r"^type: .*text", "a number is printed with the digits of its dtype, the class as numpy's"),
    (r"numpy\.(delete|insert): ", r"TypeError: \w+ requires ndarray or scalar arguments, got <class 'list'>", "a list is an array of indices"),
    (r"numpy\.(nan)?mean: .*dtype='float16'", r"^value: .*, not \[(nan|-?inf)", "sums in float32, where JAX's overflow in half precision"),
    (r"numpy\.(nan)?(prod|cumprod|cumulative_prod)", r"^value: .*inf.*, not \[nan", "subnormal numbers are kept; JAX has zero times infinity"),
    (r"(quantile|percentile): .*a0=float64.*, a1=float32", r"^value", "JAX rounds to the dtype of `q`"),
    (r"numpy\.(array_)?split", r"answers, where JAX raises ValueError: Sizes passed to split", "indices beyond the axis give empty arrays, as in NumPy"),
    (r"numpy\.histogram\w*: .*,0\]", r"answers, where JAX raises ValueError: zero-size", "no numbers lie in bins from 0 to 1, as in NumPy"),
    (r"numpy\.polydiv: .*trim_leading_zeros=True.* jvp", r"^value: \[1\].*, not \[0\.\]", "JAX gives zero; the elements that remain have a derivative"),
    (r"numpy\.polydiv: .*bfloat16", r"^value", INEXACT),
    (
        r"\.(polymul|convolve|correlate|conv_\w+|conv): ",
        r"^value: .*nan",
        "whether the zeros outside of an operand meet infinities and NaN varies in JAX by shape and dtype",
    ),
    (r"numpy\.polyfit: .*a0=float32.*, a1=float64", r"^value", INEXACT),
    (r"numpy\.apply_over_axes", r"answers, where JAX raises TypeError: 'int' object is not iterable", "one axis is taken, as in NumPy"),
    (
        r"numpy\.put: .*a0=u?int\d+.*, a2=b?float",
        r"^value",
        "elements that are not named stay as they are, where JAX rounds them to the dtype of the values and back",
    ),
    (r"random\.f: ", r"answers, where JAX raises TypeError: div", "parameters broadcast with `shape`"),
    (r"ops\.segment_(sum|prod)", r"answers, where JAX raises TypeError: (add|mul) does not accept dtype bool", "booleans are taken"),
    # linear algebra
    (r"linalg\.slogdet: .*float16", r"answers, where JAX raises NotImplementedError: .*Unsupported dtype", REFUSED),
    (r"linalg\.cholesky: .* jvp", r"^value: \[1\]", "JAX's derivative in directions that are not symmetric is not that of its values"),
    (r"linalg\.eigvalsh: .*symmetrize_input=False.* jvp", r"^value: \[1\]", "JAX's derivative in directions that are not symmetric is not that of its values"),
    (r"linalg\.matrix_rank: .*rtol=0\.5", r"^value", "as NumPy; JAX does not heed `rtol`"),
    (r"linalg\.multi_dot", r"answers, where JAX raises TypeError: `preferred_element_type`", REFUSED),
    (r"linalg\.(vector_)?norm: .*int", r"^type: ", "a norm of integers has the float dtype that `norm` gives it"),
    (r"linalg\.(toeplitz|hankel|convolution_matrix)", r"^value: .*, not \[[^]]*nan", "JAX multiplies by zero what it does not choose"),
    (r"linalg\.pascal", r"^type: .*float64, not array .*float32", "the default float dtype; JAX's is narrow where 64-bit types are on"),
    (
        r"(tensordot|matmul|dot|inner|vdot|outer|einsum|kron|matvec|vecmat|vecdot): .*complex",
        r"^value: .*(nan|inf)",
        "a real factor multiplies both parts; JAX makes it complex, and infinity times its zero is NaN",
    ),
    (
        r"(tensordot|matmul|batch_matmul|dot|inner|vdot|einsum|matvec|vecmat|vecdot): ",
        r"^value: .*\[nan\], not \[-?inf\]",
        "a product of the greatest number is rounded to infinity before it is added; JAX fuses them",
    ),
    (r"nn\.(log_)?softmax: .*a0=uint", r"^value", "differences of unsigned integers, which wrap in JAX, are taken in floats"),
    # statistics
    (r"^jax\.scipy\.stats\.", r"^type: .* float(\d\d)\*?, not array .* float\1\*?$", WEAK),
    (r"norm\.isf", r"^type: .*float32, not array .*float64", "the dtype of the points"),
    (
        r"^jax\.scipy\.stats\.(bernoulli|betabinom)\.(log)?pmf: ",
        r"^value: .*\[(-inf|0\.)[^]]*\], not",
        "0 where k is not an integer; JAX gives a number between those at its neighbours",
    ),
    (r"stats\.cauchy\.ppf: .*a0=(u?int|0)", r"^value: .*\[-?inf[^]]*\], not", "infinite at 0 and 1, which JAX rounds"),
    (r"stats\.norm\.ppf: .*a0=float32.* x64", r"^value: ", "of points in single precision JAX has the quantile in single"),
    (r"^jax\.scipy\.stats\.(betabinom|poisson)", r"^value", INEXACT),
    (r"^jax\.scipy\.stats\.gumbel_l\.logcdf", r"^value: .*, not \[0\.", "exact in the tails"),
    (r"stats\.(cauchy|gumbel_r)\.logsf", r"^value: .*, not \[-inf", "exact in the tails"),
    (r"stats\.cauchy\.isf: f\(a0.*a0=u?int", r"^value: .*\[[^]]*inf[^]]*\], not", "infinite where nothing is left, which JAX rounds"),
    (r"stats\.gaussian_kde: .*a0=float32.* x64", r"^value: \[0\] 1 of 1", "rounded once to single precision, elsewhere than in JAX"),
    (r"stats\.gumbel_l\.ppf: .* jvp", r"float0", DERIVATIVE),
    (r"stats\.norm\.ppf: f\(a0\) .*a0=float32.* jvp x64", r"^type: \[0\] .*float32, not array .*float64", "the dtype that it has without a derivative"),
    (r"^jax\.scipy\.stats", r"^value: .*, not \[[^]]*nan", "JAX gives NaN"),
    (r"^jax\.scipy\.stats", r"^value: .*\[[^]]*nan[^]]*\], not", "NaN among the arguments, or a parameter outside of its domain"),
)
