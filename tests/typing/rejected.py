"""Programs that a checker must reject: each line that ends in `# error` is wrong, and nothing else is."""

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import Array, lax, random
from ferrax.example_libraries import stax
from ferrax.experimental.sparse import BCOO
from ferrax.scipy.stats import gamma, norm

x = jnp.ones(3)


@jax.jit
def f(x: Array, scale: float) -> Array:
    return x * scale


def show() -> None:
    x[0] = 1.0  # error
    del x[0]  # error
    x.shape = (3,)  # error
    x.sums()  # error
    x.at[0].sett(1)  # error
    jnp.sum([1, 2, 3])  # error
    jnp.sum("text")  # error
    jnp.summ(x)  # error
    jnp.sum(x, axes=0)  # error
    jnp.stack(x, axis="0")  # error
    x + "a"  # error
    f(x)  # error
    f(x, "a")  # error
    f(x, scale=1.0, bias=2.0)  # error
    f(x, 1.0).no_such  # error
    jax.value_and_grad(f)(x)  # error
    jax.vmap(f, in_axis=0)  # error
    jax.jit(f, static_argnum=0)  # error
    jax.jitt(f)  # error
    random.normal(random.key(0), shapes=(3,))  # error
    random.nomal(random.key(0))  # error
    lax.fori_loop(0, 3, lambda i: i, x)  # error
    lax.scan(f)  # error
    jnp.zeros("3")  # error
    jnp.reshape(x)  # error
    jax.nn.softmax(x, dim=0)  # error
    jax.config.udpate("jax_enable_x64", True)  # error
    jax.config.update(3, True)  # error
    lax.reduce_precision(x, exponent=3)  # error
    jax.tree.map(3, x)  # error
    norm.pdf(x, scal=2.0)  # error
    gamma.cdf(x, 2.0, beta=3.0)  # error
    BCOO.fromdense(x, nsee=3)  # error
    BCOO.fromdense(x).todens()  # error
    stax.serial(stax.Dense("ten"))  # error
    jax.make_mesh((1,), axis_name=("x",))  # error
    jax.P("x").updated()  # error
    jax.dtypes.itemsize_bits(3.5)  # error
    jnp.iterable(x).sum()  # error
    jax.scipy.linalg.lu(x)[3]  # error
    jax.device_put(x).no_such  # error
    lax.map(f, x, batch=3)  # error
    n: int = x.shape  # error
    s: str = jnp.sin(x)  # error
    print(n, s)
