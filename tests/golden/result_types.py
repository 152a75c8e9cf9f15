"""The types that JAX 0.10.2 gives results, for every function and type of operand. `python -m golden.result_types` in
`tests/` on JAX rewrites result_types.txt.

A line of the file is a call, `32` or `64` for the width of types, and the operands by what comes of them: `float32* < int8 1` says that the call with
an int8 array and a Python number 1 gives a weak float32. Shapes follow a type where they are not those of the first operand.
"""
import pathlib
import warnings

import numpy as np

from golden.promotion import DTYPES, SCALARS

FILE = pathlib.Path(__file__).with_name("result_types.txt")
SOME = ("bool", "int8", "int32", "uint8", "uint32", "int64", "uint64", "bfloat16", "float16", "float32", "float64", "complex64")
PAIRS = (
    *((d, d) for d in DTYPES),
    *((d, s) for d in SOME for s in SCALARS),
    *((s, d) for d in ("bool", "int8", "uint64", "float16", "float32", "complex64") for s in SCALARS),
    *((s, t) for s in ("True", "1", "1.0") for t in ("True", "1", "1.0")),
    ("bool", "int32"), ("int32", "bool"), ("uint8", "int32"), ("int32", "uint32"), ("int32", "float16"), ("float32", "int32"), ("int64", "float32"),
    ("bfloat16", "float16"), ("float32", "bfloat16"), ("float64", "float32"), ("float32", "complex64"), ("float64", "complex64"), ("uint64", "int64"),
    ("uint64", "float32"), ("int8", "uint8"),
)  # fmt: skip

# dtypes that promote with no other; int2 and uint2 are as int4 and uint4, which the test says
NARROW = ("int4", "uint4", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
NARROW_PAIRS = (
    *((d, d) for d in NARROW),
    *((d, s) for d in NARROW for s in ("True", "1", "1.0")),
    *(("1", d) for d in NARROW),
    ("int4", "int8"), ("int4", "int32"), ("int4", "float8_e5m2"), ("bool", "int4"), ("bool", "float8_e5m2"), ("float8_e5m2", "float8_e4m3fn"),
    ("float8_e5m2", "float4_e2m1fn"), ("float8_e5m2", "bfloat16"), ("uint4", "float32"), ("float8_e4m3fn", "float32"),
)  # fmt: skip

ONE = {
    "n": (
        "abs all angle any arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argsort array asarray asinh"
        " atleast_1d atleast_3d average bitwise_count cbrt ceil conj copy corrcoef cos cosh count_nonzero cov"
        " cumprod cumsum degrees diag diagflat diagonal diff ediff1d empty_like exp exp2 expm1 fabs flip floor frexp gradient histogram i0 imag invert"
        " iscomplex isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not matrix_transpose max mean median min modf nan_to_num nanargmax"
        " nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar negative ones_like packbits positive prod ptp radians"
        " ravel real reciprocal rint rot90 round sign signbit sin sinc sinh sort spacing sqrt square std sum tan tanh trace transpose trapezoid tril triu trunc"
        " unpackbits unwrap var zeros_like"
    ),
    "nn": (
        "celu elu gelu hard_sigmoid hard_silu hard_tanh identity leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp mish relu relu6 selu"
        " sigmoid silu soft_sign softmax softplus sparse_plus sparse_sigmoid squareplus standardize tanh glu"
    ),
    "sp": "dawsn digamma entr erf erfc erfcx erfinv exp1 expi expit factorial fresnel gamma gammaln gammasgn i0 i0e i1 i1e log_ndtr loggamma logit ndtr ndtri sici spence wofz",
    "st": "expon.logpdf expon.sf gumbel_l.pdf gumbel_r.logcdf poisson.entropy rankdata uniform.pdf",
    "lax": (
        "abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj cos cosh cumlogsumexp cummax cummin cumprod cumsum digamma"
        " erf erf_inv erfc exp exp2 expm1 floor full_like imag is_finite lgamma log log1p logistic neg population_count real reciprocal reduce_and reduce_max"
        " reduce_min reduce_or reduce_prod reduce_sum reduce_xor round rsqrt sign sin sinh sort sqrt square stop_gradient tan tanh"
    ),
}
TWO = {
    "n": (
        "add arctan2 array_equal bitwise_and bitwise_or bitwise_xor copysign divide divmod equal"
        " float_power floor_divide fmax fmin fmod gcd greater greater_equal heaviside hypot isclose kron lcm ldexp left_shift less less_equal logaddexp logaddexp2"
        " logical_and logical_or logical_xor maximum minimum mod multiply nextafter not_equal outer power right_shift subtract"
        " polyadd polymul setxor1d"
    ),
    "sp": "betaln boxcox boxcox1p comb expn gammainc gammaincc kl_div poch polygamma rel_entr xlog1py xlogy zeta beta",
    "lax": (
        "add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igammac le lt max min mul mulhi ne nextafter polygamma pow rem"
        " shift_left shift_right_arithmetic shift_right_logical sub zeta random_gamma_grad"
    ),
}
FORMS = """
n.argmax(a, axis=0, keepdims=True)
n.around(a, 1)
n.round(a, -1)
n.sum(a, axis=0, dtype='float32')
n.sum(a, where=a > 0)
n.sum(a, initial=2)
n.prod(a, initial=2.0)
n.max(a, initial=0, where=a > 0)
n.mean(a, axis=1, dtype='float16')
n.mean(a, where=a > 0)
n.var(a, ddof=1)
n.std(a, dtype='float32')
n.cumsum(a, axis=0, dtype='float32')
n.cumulative_sum(a, axis=0)
n.cumulative_prod(a, axis=0, include_initial=True)
n.percentile(a, 50)
n.percentile(a, 50.0)
n.quantile(a, 0.5, method='nearest')
n.nanquantile(a, 0.5)
n.nanpercentile(a, 25)
n.clip(a, 0, 1)
n.clip(a, 0.0, 1.0)
n.clip(a, min=0.5)
n.nan_to_num(a, nan=1)
n.diff(a, prepend=0)
n.diff(a, append=0.5)
n.pad(a, 1)
n.pad(a, 1, constant_values=1.5)
n.pad(a, 1, mode='mean')
n.pad(a, 1, mode='linear_ramp')
n.full_like(a, 1.5)
n.full((2,), a[0, 0])
n.where(a > 0, a, 0)
n.where(a > 0, a, 0.5)
n.where(a > 0, 1, 2.0)
n.select([a > 0], [a], 0)
n.select([a > 0], [a], 1.5)
n.linspace(a, 2)
n.linspace(0, a, 3)
n.logspace(a, 2, 3)
n.geomspace(a, 4, 3)
n.linspace(0, 1, 3, dtype=a.dtype)
n.arange(3, dtype=a.dtype)
n.eye(2, dtype=a.dtype)
n.unwrap(a, period=6)
n.sinc(a[0])
n.gradient(a, axis=0)
n.trapezoid(a, dx=2)
n.angle(a, deg=True)
n.histogram(a, bins=2)
n.histogram(a, bins=2, density=True)
n.histogram_bin_edges(a, bins=3)
n.bincount(a.ravel(), length=3)
n.digitize(a, n.arange(3.0))
n.searchsorted(n.arange(3), a)
n.searchsorted(a[0], 1.5)
n.take(n.arange(3.0), a)
n.take(a, n.array([0, 1]))
n.take_along_axis(a, n.zeros((2, 2), 'int32'), 0)
n.choose(a, [n.zeros((2, 2)), n.ones((2, 2))])
n.interp(a, n.arange(3.0), n.arange(3.0))
n.interp(1.0, n.arange(2), a[0])
n.convolve(a[0], a[0])
n.correlate(a[0], n.ones(2))
n.polyval(a[0], 2)
n.polyval(a[0], a)
n.polyder(a[0])
n.polyint(a[0])
n.vander(a[0])
n.average(a, weights=a)
n.average(a, weights=n.ones((2, 2)))
n.cov(a, ddof=0)
n.unravel_index(a, (3, 3))
n.insert(a[0], 1, 5.5)
n.append(a, 1)
n.append(a, 1.5)
n.concatenate([a, n.ones((2, 2))])
n.stack([a, n.ones((2, 2), 'int32')])
n.block([[a, 1], [1.5, a]])
n.array([a[0, 0], 1])
n.array([a[0, 0], 1.5])
n.array([1, a[0, 0], True])
n.float32(a)
n.int8(a)
n.bool_(a)
n.complex64(a)
n.astype(a, float)
n.asarray(a, dtype=int)
n.matmul(a, a)
n.dot(a, a)
n.dot(a, 2)
n.dot(a, 2.0)
n.inner(a, 2)
n.vdot(a, a)
n.vecdot(a, a)
n.tensordot(a, a)
n.einsum('ij,jk->ik', a, a)
n.einsum('ij->i', a)
n.einsum('ij,jk->ik', a, n.ones((2, 2), 'int32'))
n.matmul(a, n.ones((2, 2)))
n.matmul(a, n.ones((2, 2), 'int8'))
n.matmul(a, a, preferred_element_type='float32')
n.cross(n.ones(3, a.dtype), n.ones(3))
n.sort_complex(a)
n.lexsort((a[0], a[1]))
a.at[0].set(1.5)
a.at[0].add(1)
a.at[0].mul(a[1])
a.at[0].max(2)
a.at[0].power(2)
a.at[n.array([0])].divide(2)
a[0]
a[n.array([0, 1]), 1]
a[a[0] > 0]
n.arange(3)[a]
+a
-a
~a
abs(a)
a + 1
1 - a
a * 1.5
a / 2
a // 2
a % 2
a ** 2
a ** 0.5
a ** -1
2 ** a
a ** a
a @ a
a & 1
a << 1
a >> 1
a == 1
a < 1.5
divmod(a, 2)
a + np.float32(1)
a + np.int8(1)
a * np.ones(2)
a.mean()
a.sum()
a.std()
a.round()
a.clip(0, 1)
a.astype(bool)
a.real
a.imag
a.argmax()
a.dot(a)
a.cumsum()
a.ptp()
a.T
nn.relu(a)
nn.elu(a, 2)
nn.leaky_relu(a, 1)
nn.celu(a, 2.0)
nn.gelu(a, approximate=False)
nn.softmax(a, axis=0, where=a > 0)
nn.logsumexp(a, b=2)
nn.logsumexp(a, where=a > 0)
nn.one_hot(a, 3)
nn.one_hot(a, 3, dtype='int8')
nn.standardize(a, axis=0)
nn.squareplus(a, b=1)
nn.dot_product_attention(a.reshape(1, 2, 1, 2), a.reshape(1, 2, 1, 2), a.reshape(1, 2, 1, 2))
sp.betainc(a, a, 0.5)
sp.hyp1f1(a, 1, 2.0)
sp.hyp2f1(a, 1, 2, 0.5)
sp.bessel_jn(a, v=1)
st.binom.pmf(a, 4, 0.5)
st.binom.pmf(1, a, 0.5)
st.gamma.sf(a, 2, scale=2.0)
st.dirichlet.pdf(a, n.ones(2))
st.mode(a, axis=None)
st.rankdata(a, 'dense', axis=1)
sp.polygamma(1, a)
sp.multigammaln(a, 1)
sp.bernoulli(3)
sp.logsumexp(a, b=a)
sp.softmax(a, axis=0)
lax.add(a, 1)
lax.mul(a, 1.5)
lax.max(a, 0)
lax.pow(a, 2)
lax.pow(a, 0.5)
lax.integer_pow(a, 3)
lax.clamp(0, a, 1)
lax.clamp(a, a, a)
lax.select(a > 0, a, a)
lax.convert_element_type(a, float)
lax.reduce_precision(a, 5, 5)
lax.argmax(a, 0, 'int32')
lax.top_k(a, 1)
lax.sort(a)
lax.dot(a, a)
lax.dot(a, a, preferred_element_type='float32')
lax.batch_matmul(a[None], a[None])
lax.iota(a.dtype, 3)
lax.full((2,), a[0, 0])
lax.full_like(a, 2.5)
lax.pad(a, n.zeros((), a.dtype), [(1, 1, 0), (0, 0, 0)])
lax.concatenate([a, a], 0)
lax.reduce(a, n.zeros((), a.dtype), lax.add, [0])
lax.cumsum(a, reverse=True)
lax.select_n(a > 0, a, a)
lax.bitcast_convert_type(a, 'int32')
lax.expand_dims(a, [0])
lax.dynamic_slice(a, (0, 1), (1, 1))
lax.dynamic_slice(n.ones((2, 2)), (a[0, 0], 1), (1, 1))
lax.dynamic_update_slice(a, a[:1], (0, 0))
lax.reduce_window(a, 0.0, lax.add, (2, 2), (1, 1), 'VALID')
lax.conv(a[None, None], a[None, None], (1, 1), 'SAME')
lax.map(lambda x: x * 2, a)
lax.scan(lambda c, x: (c + 1, c * x), 0, a)
lax.scan(lambda c, x: (c + x.sum(), c), n.zeros((), a.dtype), a)
lax.fori_loop(0, 3, lambda i, x: x, a)
lax.cond(a[0, 0] > 0, lambda x: x, lambda x: x, a)
lax.cond(a[0, 0], lambda x: x, lambda x: x, a)
lax.switch(a[0, 0], [lambda x: x, lambda x: x], a)
lax.while_loop(lambda x: x[0, 0] > 0, lambda x: x, a)
jax.grad(lambda x: n.sum(x * x))(a)
jax.grad(lambda x: n.sum(n.sin(x)))(a)
jax.value_and_grad(n.mean)(a)
jax.jacfwd(n.sin)(a)
jax.jacrev(n.sin)(a)
jax.jvp(n.sin, (a,), (a,))
jax.vjp(n.sin, a)[0]
jax.vmap(n.sum)(a)
jax.jit(n.sin)(a)
jax.random.uniform(jax.random.PRNGKey(0), (2,), a.dtype)
jax.random.normal(jax.random.PRNGKey(0), (2,), a.dtype)
jax.random.randint(jax.random.PRNGKey(0), (2,), 0, 5, a.dtype)
jax.random.bernoulli(jax.random.PRNGKey(0), a)
jax.random.categorical(jax.random.PRNGKey(0), a)
jax.random.permutation(jax.random.PRNGKey(0), a)
jax.random.choice(jax.random.PRNGKey(0), a)
jax.random.gamma(jax.random.PRNGKey(0), a)
jax.random.poisson(jax.random.PRNGKey(0), a)
jax.random.exponential(jax.random.PRNGKey(0), (2,), a.dtype)
jax.random.bits(jax.random.PRNGKey(0), (2,), a.dtype)
jax.random.fold_in(jax.random.PRNGKey(0), a[0, 0])
jax.random.truncated_normal(jax.random.PRNGKey(0), a, 2)
jax.random.beta(jax.random.PRNGKey(0), a, 1)
jax.random.randint(jax.random.PRNGKey(0), (2, 2), 0, a)
jax.random.uniform(jax.random.PRNGKey(0), (2, 2), float, a, 2)
"""


def calls():
    """(the call's text, its operands' kinds)"""
    one, two = [(d,) for d in (*DTYPES, *NARROW, *SCALARS)], [*PAIRS, *NARROW_PAIRS]
    for module, names in ONE.items():
        yield from ((f"{module}.{name}(a)", one) for name in names.split())
    for module, names in TWO.items():
        yield from ((f"{module}.{name}(a, b)", two) for name in names.split())
    arrays = [(d,) for d in (*DTYPES, *NARROW)]
    yield from ((form, arrays) for form in FORMS.strip().splitlines())


def described(jax, env, code, kinds):
    """The types of the results of a call, which is given as compiled code."""
    scalars = {v: SCALARS[k] for v, k in zip("ab", kinds, strict=False) if k in SCALARS}
    if env["dtypes"]["float64"] == np.float32 and any(k in ("int64", "uint64", "float64", "complex128") for k in kinds):
        return None
    arrays = {v: jax.ShapeDtypeStruct((2, 2), env["dtypes"][k]) for v, k in zip("ab", kinds, strict=False) if k not in SCALARS}
    try:
        out = jax.eval_shape(lambda xs: eval(code, {**env, **scalars, **xs}), arrays)
    except Exception as e:
        return type(e).__name__
    shape = lambda x: "" if x.shape == (2, 2) else f"[{','.join(map(str, x.shape))}]"
    return " ".join(f"{x.dtype}{shape(x)}{'*' if x.weak_type else ''}" for x in jax.tree_util.tree_leaves(out))


def table(jax):
    """{"call width": {operands: result}}"""
    env = dict(jax=jax, n=jax.numpy, nn=jax.nn, sp=jax.scipy.special, st=jax.scipy.stats, lax=jax.lax, np=np)
    out = {}
    for wide in (False, True):
        jax.config.update("jax_enable_x64", wide)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                env["dtypes"] = {k: jax.numpy.zeros((), k).dtype for k in (*DTYPES, *NARROW, "int2", "uint2")}
                for call, operands in calls():
                    code = compile(call, call, "eval")
                    row = {" ".join(kinds): described(jax, env, code, kinds) for kinds in operands}
                    out[f"{call} {64 if wide else 32}"] = {k: v for k, v in row.items() if v is not None}
        finally:
            jax.config.update("jax_enable_x64", False)
    return out


def text(table):
    lines = []
    for call, row in table.items():
        groups = {}
        for operands, result in row.items():
            groups.setdefault(result, []).append(operands)
        lines.append(call + "".join(f"\n    {result} < {', '.join(operands)}" for result, operands in groups.items()))
    return "\n".join(lines) + "\n"


def read():
    """The file, as `table` gives it."""
    out = {}
    for line in FILE.read_text().splitlines():
        if not line.startswith("    "):
            row = out[line] = {}
        else:
            result, operands = line[4:].split(" < ", 1)
            row.update(dict.fromkeys(operands.split(", "), result))
    return out


if __name__ == "__main__":
    import jax.scipy.special
    import jax.scipy.stats

    FILE.write_text(text(table(jax)))
