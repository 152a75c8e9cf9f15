"""What Python gives for the cases of `golden.rs`, a line each: name, dtype, shape, a hash of all bytes, the first words.

PYTHONPATH=python python crates/ferrax/tests/face/golden.py > crates/ferrax/tests/face/golden.txt
"""

import ferrax as fx
import ferrax.numpy as jnp
import numpy as np
from ferrax import lax, nn, random

K = random.key(7)
X = random.normal(random.key(1), (4, 6))
Y = random.normal(random.key(2), (6, 5))
V = random.uniform(random.key(3), (8,), minval=0.5, maxval=3.0)
S = X[:, :4] @ X[:, :4].T + 4 * jnp.eye(4)
I = jnp.array([2, 0, 3], dtype=jnp.int32)
S8 = (8,)

CASES = {
    "key": lambda: random.key_data(K),
    "split": lambda: random.key_data(random.split(K, 3)),
    "fold_in": lambda: random.key_data(random.fold_in(K, 5)),
    "bits8": lambda: random.bits(K, (5,), jnp.uint8),
    "bits32": lambda: random.bits(K, (5,), jnp.uint32),
    "uniform": lambda: random.uniform(K, (3, 5)),
    "uniform_f16": lambda: random.uniform(K, (9,), jnp.float16),
    "uniform_bf16": lambda: random.uniform(K, (9,), jnp.bfloat16),
    "uniform_between": lambda: random.uniform(K, S8, minval=-2.0, maxval=V),
    "randint": lambda: random.randint(K, (9,), -3, 17),
    "randint_i8": lambda: random.randint(K, (9,), -100, 300, jnp.int8),
    "normal": lambda: random.normal(K, (3, 5)),
    "normal_f16": lambda: random.normal(K, (9,), jnp.float16),
    "normal_bf16": lambda: random.normal(K, (9,), jnp.bfloat16),
    "normal_c64": lambda: random.normal(K, (4,), jnp.complex64),
    "truncated_normal": lambda: random.truncated_normal(K, -1.0, 2.0, S8),
    "exponential": lambda: random.exponential(K, S8),
    "gumbel": lambda: random.gumbel(K, S8),
    "laplace": lambda: random.laplace(K, S8),
    "logistic": lambda: random.logistic(K, S8),
    "cauchy": lambda: random.cauchy(K, S8),
    "bernoulli": lambda: random.bernoulli(K, 0.3, (20,)),
    "rademacher": lambda: random.rademacher(K, S8, jnp.float32),
    "pareto": lambda: random.pareto(K, V, S8),
    "weibull_min": lambda: random.weibull_min(K, 2.0, 1.5, S8),
    "rayleigh": lambda: random.rayleigh(K, V, S8),
    "geometric": lambda: random.geometric(K, 0.2, S8),
    "triangular": lambda: random.triangular(K, -1.0, 0.5, 2.0, S8),
    "lognormal": lambda: random.lognormal(K, V, S8),
    "maxwell": lambda: random.maxwell(K, S8),
    "double_sided_maxwell": lambda: random.double_sided_maxwell(K, 1.0, 2.0, S8),
    "wald": lambda: random.wald(K, V, S8),
    "categorical": lambda: random.categorical(K, X, axis=1),
    "permutation": lambda: random.permutation(K, jnp.arange(20)),
    "permutation_rows": lambda: random.permutation(K, X),
    "choice": lambda: random.choice(K, V, (5,)),
    "choice_without": lambda: random.choice(K, V, (5,), replace=False),
    "choice_weights": lambda: random.choice(K, V, (5,), p=V / V.sum()),
    "choice_weights_without": lambda: random.choice(K, V, (5,), replace=False, p=V / V.sum()),
    "multivariate_normal": lambda: random.multivariate_normal(K, X[:, 0], S, (3,)),
    "orthogonal": lambda: random.orthogonal(K, 4),
    "gamma": lambda: random.gamma(K, V, S8),
    "loggamma": lambda: random.loggamma(K, V - 0.45, S8),
    "beta": lambda: random.beta(K, V, 2.0, S8),
    "dirichlet": lambda: random.dirichlet(K, V, (3,)),
    "chisquare": lambda: random.chisquare(K, V, S8),
    "f": lambda: random.f(K, V, 3.0, S8),
    "t": lambda: random.t(K, V, S8),
    "generalized_normal": lambda: random.generalized_normal(K, 1.5, S8),
    "ball": lambda: random.ball(K, 3, 2, (4,)),
    "poisson": lambda: random.poisson(K, V * 8, S8),
    "binomial": lambda: random.binomial(K, 40.0, V / 4, S8),
    "multinomial": lambda: random.multinomial(K, 50.0, jnp.array([0.2, 0.5, 0.3])),
    "gamma_grad": lambda: fx.grad(lambda a: random.gamma(K, a, S8).sum())(V),
    "linspace": lambda: jnp.linspace(-1.5, 2.0, 11),
    "mean": lambda: jnp.mean(X, axis=0),
    "var": lambda: jnp.var(X, axis=1),
    "std": lambda: jnp.std(X),
    "sum_f16": lambda: jnp.sum(X.astype(jnp.float16), axis=1),
    "logsumexp": lambda: fx.nn.logsumexp(X, axis=1),
    "median": lambda: jnp.median(X, axis=1),
    "cumsum": lambda: jnp.cumsum(X, axis=1),
    "cumprod": lambda: jnp.cumprod(X, axis=0),
    "matmul": lambda: X @ Y,
    "einsum": lambda: jnp.einsum("ij,jk,lj->lki", X, Y, X),
    "batched": lambda: jnp.matmul(jnp.stack([X, X * 2]), Y),
    "hypot": lambda: jnp.hypot(X[:, :5], Y[:4]),
    "mod": lambda: jnp.mod(X[:, :5], Y[:4]),
    "floor_divide": lambda: jnp.floor_divide(X[:, :5], Y[:4]),
    "log2": lambda: jnp.log2(V),
    "power": lambda: jnp.power(V, 1.7),
    "cholesky": lambda: jnp.linalg.cholesky(S),
    "solve": lambda: jnp.linalg.solve(S, X),
    "inv": lambda: jnp.linalg.inv(S),
    "eigh": lambda: jnp.linalg.eigh(S)[0],
    "svd": lambda: jnp.linalg.svd(X, full_matrices=False)[1],
    "slogdet": lambda: jnp.linalg.slogdet(S)[1],
    "rfft": lambda: jnp.fft.rfft(X, axis=1),
    "ifft": lambda: jnp.fft.ifft(X, axis=0),
    "conv": lambda: lax.conv_general_dilated(
        jnp.ones((1, 1, 4, 4)) * S, jnp.reshape(X[:2, :4], (2, 1, 2, 2)), (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
    ),
    "sort": lambda: jnp.sort(X, axis=1),
    "argsort": lambda: jnp.argsort(X, axis=0),
    "top_k": lambda: lax.top_k(X, 2)[0],
    "gather": lambda: X[I, 1:5],
    "scatter": lambda: X.at[I].add(V[:6]),
    "relu": lambda: nn.relu(X),
    "gelu": lambda: nn.gelu(X),
    "gelu_exact": lambda: nn.gelu(X, approximate=False),
    "silu": lambda: nn.silu(X),
    "softplus": lambda: nn.softplus(X),
    "elu": lambda: nn.elu(X),
    "selu": lambda: nn.selu(X),
    "celu": lambda: nn.celu(X),
    "mish": lambda: nn.mish(X),
    "log_sigmoid": lambda: nn.log_sigmoid(X),
    "hard_silu": lambda: nn.hard_silu(X),
    "squareplus": lambda: nn.squareplus(X),
    "softmax": lambda: nn.softmax(X, axis=1),
    "log_softmax": lambda: nn.log_softmax(X, axis=0),
    "standardize": lambda: nn.standardize(X),
    "glorot_uniform": lambda: nn.initializers.glorot_uniform()(K, (4, 6)),
    "he_normal": lambda: nn.initializers.he_normal()(K, (3, 3, 4, 6)),
    "attention": lambda: nn.dot_product_attention(*[jnp.reshape(X, (1, 3, 2, 4))] * 3, is_causal=True),
    "softmax_grad": lambda: fx.grad(lambda x: (nn.log_softmax(x) * X).sum())(X * 2),
    "hessian": lambda: fx.hessian(lambda v: jnp.sum(jnp.sin(v) * jnp.cumsum(v)))(V),
    "scan": lambda: lax.scan(lambda c, x: (jnp.sin(c) + x, c * x), jnp.float32(0.5), V)[1],
    "associative_scan": lambda: lax.associative_scan(jnp.multiply, X, axis=1),
}


def line(name, f):
    """One case as a line."""
    x = np.asarray(f())
    data, h = x.tobytes(), 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) % 2**64
    head = " ".join(str(v) for v in x.ravel()[:3].tolist())
    return f"{name} {x.dtype.name} {','.join(map(str, x.shape))}; {h:016x} {head}"


if __name__ == "__main__":
    for name, f in CASES.items():
        print(line(name, f))
