"""einops: rearrangements, reductions, repetitions, sums of products, packing, layers, under transformations."""

import einops
import einops.layers.flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from einops import asnumpy, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from outcomes import Programs

rng = np.random.RandomState(0)
K = jax.random.key(0)
x = jnp.asarray(rng.randn(4, 6), jnp.float32)
img = jnp.asarray(rng.randn(2, 8, 8, 3), jnp.float32)


def programs(t):
    t("ei r", lambda: rearrange(img, "b (h p) w c -> b h (p w) c", p=2))
    t("ei red", lambda: reduce(img, "b h w c -> b c", "mean"))
    t("ei rep", lambda: repeat(x, "a b -> a b c", c=2))
    t("ei ein", lambda: einsum(x, x, "a b, c b -> a c"))
    t("ei jit", lambda: jax.jit(lambda v: rearrange(v, "a b -> (a b)"))(x))
    t("ei pack", lambda: pack([x, x[0]], "* d")[0])
    for pattern, sizes in (
        ("b h w c -> b c h w", {}),
        ("b h w c -> (b h) w c", {}),
        ("b (h p) (w q) c -> b (h w) (p q c)", dict(p=4, q=2)),
        ("(b1 b2) h w c -> (b2 h) (b1 w) c", dict(b1=2)),
        ("b ... c -> c ... b", {}),
        ("b h w c -> b 1 (h w) 1 c", {}),
        ("b h (w w2) c -> (h w2) (b w c)", dict(w2=2)),
    ):
        t(f"rearrange {pattern}", lambda: rearrange(img, pattern, **sizes))
    for how in ("mean", "sum", "max", "min", "prod", "any", "all"):
        t(f"reduce {how}", lambda: reduce(img > 0.5 if how in ("any", "all") else img, "b (h p) (w q) c -> b h w c", how, p=4, q=4))
    t("reduce to 1", lambda: reduce(img, "b h w c -> () h 1 c", "max"))
    t("reduce by function", lambda: reduce(img, "b h w c -> h c", lambda v, axes: jnp.sqrt((v**2).sum(axes))))
    t("reduce ellipsis", lambda: reduce(img, "... c -> c", "sum"))
    t("reduce ints", lambda: reduce(jnp.arange(12).reshape(3, 4), "a (b c) -> a b", "sum", c=2))
    t(
        "reduce mean of ints",
        lambda: reduce(jnp.arange(12).reshape(3, 4), "a b -> a", "mean"),
        raises=NotImplementedError,
        why="einops takes no mean of integers",
    )
    for pattern, sizes in (("a b -> a (r b)", dict(r=2)), ("a b -> (a r) (b s)", dict(r=2, s=3)), ("a b -> r a b", dict(r=3)), ("a ... -> a ... r", dict(r=2))):
        t(f"repeat {pattern}", lambda: repeat(x, pattern, **sizes))
    t("einsum three", lambda: einsum(x, x, x[0], "a b, c b, b -> a c"))
    t("einsum batch", lambda: einsum(img, img, "b h w c, b i j c -> b h i"))
    t("einsum ellipsis", lambda: einsum(img, x[:3], "... c, c d -> ... d"))
    t("einsum scalar", lambda: einsum(x, x, "a b, a b ->"))
    t("einsum grad", lambda: jax.grad(lambda v: einsum(v, v, "a b, c b -> a c").sum())(x))
    t("unpack", lambda: unpack(*pack([img[0], x[:2, :3]], "* c"), "* c"))
    t("unpack jit", lambda: jax.jit(lambda v: unpack(v, [(2,), (4,)], "a *"))(x))
    t("parse", lambda: parse_shape(img, "b _ w c"))
    t("as numpy", lambda: asnumpy(x) + 1)
    t("list", lambda: rearrange([x[0], x[1]], "n d -> d n"))
    t("list of reductions", lambda: reduce([x, x + 1], "n a b -> a", "max"))
    t("jit patches", lambda: jax.jit(lambda v: rearrange(v, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2))(img))
    t("vmap", lambda: jax.vmap(lambda v: reduce(v, "(h p) w c -> h c", "max", p=2))(img))
    t("grad of max", lambda: jax.grad(lambda v: reduce(v, "b (h p) (w q) c -> b h w c", "max", p=2, q=2).sum())(img))
    t("jvp", lambda: jax.jvp(lambda v: repeat(v, "a b -> a (b r)", r=2), (x,), (x,))[1])
    t("scan", lambda: jax.lax.scan(lambda c, v: (c + reduce(v, "h w c -> c", "mean"), rearrange(v, "h w c -> c (h w)")), jnp.zeros(3), img))
    t("attention", lambda: attention(img))
    t("shapes", lambda: jax.eval_shape(lambda v: rearrange(v, "b h w c -> b (h w c)"), img))
    t("bfloat16", lambda: reduce(img.astype(jnp.bfloat16), "b h w c -> b c", "sum"))
    t("bool", lambda: rearrange(x > 0, "a b -> b a"))
    t("layer", lambda: layers(einops.layers.flax.Rearrange("b h w c -> b (h w) c", sizes={})))
    t("layer reduce", lambda: layers(einops.layers.flax.Reduce("b (h p) w c -> b h c", "mean", sizes={"p": 2})))
    t("layer mix", lambda: layers(einops.layers.flax.EinMix("b h w c -> b h w d", weight_shape="c d", bias_shape="d", sizes=dict(c=3, d=5))))
    t("error size", lambda: rearrange(x, "a (b c) -> a b c", b=4), raises="EinopsError", why="6 is not a multiple of 4")
    t("error rank", lambda: rearrange(x, "a b c -> a b c"), raises="EinopsError", why="the pattern has three axes, the array two")
    t("error name", lambda: rearrange(x, "a b -> a c"), raises="EinopsError", why="c is not an axis of the array")
    t("error reduction", lambda: reduce(x, "a b -> a", "median"), raises="EinopsError", why="there is no such reduction")
    t("error traced", lambda: jax.jit(lambda v: rearrange(v, "(a 5) b -> a b"))(x), raises="EinopsError", why="4 is not a multiple of 5")
    t("error einsum", lambda: einsum(x, x, "a b, c b -> a d"), raises="EinopsError", why="d is not an axis of the operands")
    t("error unpack", lambda: unpack(x, [(2,), (3,)], "* b"), raises="EinopsError", why="the shapes do not add up")


def attention(v):
    """Attention over patches, with heads folded into channels."""
    tokens = rearrange(v, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2)
    q, k, w = rearrange(jnp.concatenate([tokens, tokens * 0.5, tokens + 1], -1), "b n (three heads d) -> three b heads n d", three=3, heads=2)
    weights = jax.nn.softmax(einsum(q, k, "b h i d, b h j d -> b h i j"))
    return rearrange(einsum(weights, w, "b h i j, b h j d -> b h i d"), "b h n d -> b n (h d)")


def layers(layer):
    parameters = layer.init(K, img)
    return parameters, layer.apply(parameters, img)


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_einops(name):
    PROGRAMS.check(name)
