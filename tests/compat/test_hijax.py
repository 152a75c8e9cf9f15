"""Operations with rules of their own (`VJPHiPrimitive`) and values that consist of arrays (hijax), under every transformation."""

import dataclasses
import itertools

import numpy as np
import pytest

pytestmark = pytest.mark.ours


@pytest.fixture(scope="module")
def hijax():
    from ferrax.compat._src.hijax import primitives as _hiprimitives, types as _hijax

    class Names:
        HiType, MappingSpec, MutableHiType, HiPrimitive = _hijax.HiType, _hijax.MappingSpec, _hijax.MutableHiType, _hijax.HiPrimitive
        VJPHiPrimitive, register_hitype = _hiprimitives.VJPHiPrimitive, staticmethod(_hijax.register_hitype)
        Zero, instantiate_zeros, AvalQDD = _hijax.Zero, staticmethod(_hijax.instantiate_zeros), _hijax.AvalQDD
        cur_qdd = staticmethod(_hijax.cur_qdd)

    return Names


def product(hijax, jax, jnp, rules, seen=None):
    """sin(x) y as an operation with some of the rules; each derivative is thrice the true one, so that it is seen which rule ran."""
    filled = hijax.instantiate_zeros

    class SinTimes(hijax.VJPHiPrimitive):
        def __init__(self, x, y):
            self.in_avals, self.out_aval, self.params = (x, y), x, {}
            super().__init__()

        def expand(self, x, y):
            return jnp.sin(x) * y

        if "vjp" in rules:

            def vjp_fwd(self, nzs_in, x, y):
                if seen is not None:
                    seen.append(nzs_in)
                return self(x, y), (x, y)

            def vjp_bwd_retval(self, res, g):
                x, y = res
                return 3 * jnp.cos(x) * y * g, 3 * jnp.sin(x) * g

        if "bwd" in rules:

            def vjp_fwd(self, nzs_in, x, y):
                return self(x, y), (x, y)

            def vjp_bwd(self, res, g, x_acc, y_acc):
                x, y = res
                x_acc.accum(jnp.cos(x) * y * g)
                x_acc.accum(2 * jnp.cos(x) * y * g)
                y_acc.accum(3 * jnp.sin(x) * g)

        if "jvp" in rules:

            def jvp(self, primals, tangents):
                (x, y), (dx, dy) = primals, map(filled, tangents)
                return self(x, y), 3 * (jnp.cos(x) * y * dx + jnp.sin(x) * dy)

        if "lin" in rules:

            def lin(self, nzs_in, x, y):
                return self(x, y), (x, y)

            def linearized(self, res, dx, dy):
                x, y = res
                return 3 * (jnp.cos(x) * y * filled(dx) + jnp.sin(x) * filled(dy))

        if "batch" in rules:

            def batch_dim_rule(self, axis, dims):
                return next(d for d in dims if d is not None)

    return lambda x, y: SinTimes(jax.typeof(x), jax.typeof(y))(x, y)


REVERSE = {
    "grad": lambda jax, f: jax.grad(f, (0, 1)),
    "jit(grad)": lambda jax, f: jax.jit(jax.grad(f, (0, 1))),
    "grad(jit)": lambda jax, f: jax.grad(jax.jit(f), (0, 1)),
    "vjp": lambda jax, f: lambda x, y: jax.vjp(f, x, y)[1](np.float32(1)),
    "grad in vmap": lambda jax, f: lambda x, y: tuple(g[0] for g in jax.vmap(jax.grad(f, (0, 1)))(x[None], y[None])),
    "grad of vmap": lambda jax, f: lambda x, y: tuple(jax.grad(lambda x, y: jax.vmap(f, (None, 0))(x, y[None]).sum(), (0, 1))(x, y)),
    "grad of vmap of vmap": lambda jax, f: (
        lambda x, y: jax.grad(lambda x, y: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(x[None], y[None]).sum(), (0, 1))(x, y)
    ),
    "grad of scan": lambda jax, f: lambda x, y: jax.grad(lambda x, y: jax.lax.scan(lambda c, _: (f(c, y), None), x, None, length=1)[0], (0, 1))(x, y),
    "grad of checkpoint": lambda jax, f: jax.grad(jax.checkpoint(f), (0, 1)),
    "grad of cond": lambda jax, f: jax.grad(lambda x, y: jax.lax.cond(x > 0, f, lambda x, y: x, x, y), (0, 1)),
}


@pytest.mark.parametrize("rules", ["vjp batch", "bwd batch", "vjp jvp batch", "lin batch", "jvp batch"])
@pytest.mark.parametrize("name", REVERSE)
def test_reverse_mode_uses_the_rule(jax, jnp, hijax, rules, name):
    f = product(hijax, jax, jnp, rules.split())
    x, y = jnp.float32(2), jnp.float32(3)
    np.testing.assert_allclose(REVERSE[name](jax, f)(x, y), [9 * np.cos(2), 3 * np.sin(2)], rtol=1e-5)


FORWARD = {
    "jvp": lambda jax, f: lambda x, y: jax.jvp(f, (x, y), (x, y))[1],
    "jvp of jit": lambda jax, f: lambda x, y: jax.jvp(jax.jit(f), (x, y), (x, y))[1],
    "jit of jvp": lambda jax, f: jax.jit(lambda x, y: jax.jvp(f, (x, y), (x, y))[1]),
    "linearize": lambda jax, f: lambda x, y: jax.linearize(f, x, y)[1](x, y),
    "jvp of vmap": lambda jax, f: lambda x, y: jax.jvp(jax.vmap(f), (x[None], y[None]), (x[None], y[None]))[1][0],
    "jvp of scan": lambda jax, f: lambda x, y: jax.jvp(lambda x, y: jax.lax.scan(lambda c, _: (f(c, y), None), x, None, length=1)[0], (x, y), (x, y))[1],
}


@pytest.mark.parametrize("rules", ["jvp batch", "vjp jvp batch", "lin batch"])
@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_uses_the_rule(jax, jnp, hijax, rules, name):
    f = product(hijax, jax, jnp, rules.split())
    np.testing.assert_allclose(FORWARD[name](jax, f)(jnp.float32(2), jnp.float32(3)), 3 * (np.cos(2) * 3 * 2 + np.sin(2) * 3), rtol=1e-5)


def test_values_and_batches(jax, jnp, hijax):
    f = product(hijax, jax, jnp, ["batch"])
    xs, ys = jnp.arange(3.0), jnp.arange(2.0) + 1
    want = np.sin(np.arange(3.0))[:, None] * (np.arange(2.0) + 1)
    for run in (lambda g: g, jax.jit):
        np.testing.assert_allclose(run(f)(2.0, 3.0), 3 * np.sin(2), rtol=1e-6)
        np.testing.assert_allclose(run(jax.vmap(jax.vmap(f, (None, 0)), (0, None)))(xs, ys), want, rtol=1e-6)
    assert str(jax.make_jaxpr(f)(2.0, 3.0)).count("call_hi_primitive[") == 1


def test_second_derivatives(jax, jnp, hijax):
    f = product(hijax, jax, jnp, ["vjp", "jvp", "batch"])
    assert np.isclose(jax.grad(jax.grad(f))(2.0, 3.0), -9 * np.sin(2))
    assert np.isclose(jax.jacfwd(jax.grad(f))(2.0, 3.0), -9 * np.sin(2))


def test_rules_that_are_missing(jax, jnp, hijax):
    bare = product(hijax, jax, jnp, [])
    one = lambda x: bare(x, x)
    for call, rule in (
        (lambda: jax.grad(one)(1.0), "for grad support, .* must implement `vjp_fwd`"),
        (lambda: jax.jvp(one, (1.0,), (1.0,)), "for jvp support, .* must implement `jvp`"),
        (lambda: jax.vmap(one)(jnp.ones(2)), "for vmap support, .* must implement `batch` or `batch_dim_rule`"),
        (lambda: jax.jvp(lambda x: product(hijax, jax, jnp, ["vjp"])(x, x), (1.0,), (1.0,)), "for jvp support"),
    ):
        with pytest.raises(NotImplementedError, match=rule):
            call()
    with pytest.raises(AttributeError, match="in_avals"):
        type("Nothing", (hijax.VJPHiPrimitive,), {})()


def test_which_arguments_have_derivatives(jax, jnp, hijax):
    seen = []
    f = product(hijax, jax, jnp, ["vjp"], seen)
    jax.grad(f, 0)(2.0, 3.0), jax.grad(f, 1)(2.0, 3.0), jax.grad(f, (0, 1))(2.0, 3.0)
    assert seen == [(True, False), (False, True), (True, True)]


def test_pytrees_and_zeros(jax, jnp, hijax):
    seen = []

    class Parts(hijax.VJPHiPrimitive):
        def __init__(self, tree):
            self.in_avals, self.out_aval, self.params = (tree,), {"a": tree["x"], "b": (tree["x"], tree["y"])}, {}
            super().__init__()

        def expand(self, t):
            return {"a": t["x"] ** 2, "b": (jnp.sin(t["x"]), jnp.cos(t["y"]))}

        def vjp_fwd(self, nzs_in, t):
            return self(t), t

        def vjp_bwd_retval(self, t, g):
            seen.append(isinstance(g["b"][1], hijax.Zero))
            g = jax.tree.map(hijax.instantiate_zeros, g, is_leaf=lambda x: isinstance(x, hijax.Zero))
            return ({"x": 2 * t["x"] * g["a"] + jnp.cos(t["x"]) * g["b"][0], "y": -jnp.sin(t["y"]) * g["b"][1]},)

    def f(t):
        out = Parts(jax.tree.map(jax.typeof, t))(t)
        return out["a"] + out["b"][0]

    for run in (lambda g: g, jax.jit):
        grads = run(jax.grad(f))({"x": 1.0, "y": 2.0})
        assert np.isclose(grads["x"], 2 + np.cos(1)) and grads["y"] == 0
    assert all(seen)


# ---------------------------------------------------------------- values of arrays


@dataclasses.dataclass(frozen=True)
class QArray:
    qvalue: object
    scale: object


@pytest.fixture(scope="module")
def quantized(hijax):
    """(quantize, dequantize, product, the type, how it is mapped): arrays of int8 with a scale for each row, whose tangents are float32."""
    import ferrax as jax
    import ferrax.numpy as jnp
    from ferrax.core import ShapedArray

    @dataclasses.dataclass(frozen=True)
    class Ty(hijax.HiType):
        shape: tuple

        def lo_ty(self):
            return [ShapedArray(self.shape, np.dtype("int8")), ShapedArray(self.shape[:-1], np.dtype("float32"))]

        def lower_val(self, q):
            return [q.qvalue, q.scale]

        def raise_val(self, qvalue, scale):
            return QArray(qvalue, scale)

        def to_tangent_aval(self):
            return ShapedArray(self.shape, np.dtype("float32"))

        def dec_rank(self, size, spec):
            return Ty(self.shape[: spec.axis] + self.shape[spec.axis + 1 :])

        def inc_rank(self, size, spec):
            return Ty((*self.shape[: spec.axis], size, *self.shape[spec.axis :]))

    @dataclasses.dataclass(frozen=True)
    class Spec(hijax.MappingSpec):
        axis: int = 0

    hijax.register_hitype(QArray, lambda q: Ty(tuple(q.qvalue.shape)))
    float32 = lambda shape: ShapedArray(shape, np.dtype("float32"))

    class Quantize(hijax.VJPHiPrimitive):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), Ty(tuple(x.shape)), {}
            super().__init__()

        def expand(self, x):
            scale = jnp.max(jnp.abs(x), axis=-1) / 127.0
            return QArray(jnp.round(x / scale[..., None]).astype(jnp.int8), scale)

        vjp_fwd = lambda self, nzs, x: (self(x), None)
        vjp_bwd_retval = lambda self, res, g: (g,)
        jvp = lambda self, primals, tangents: (self(*primals), tangents[0])

    class Dequantize(Quantize):
        def __init__(self, q):
            self.in_avals, self.out_aval, self.params = (q,), float32(q.shape), {}
            hijax.VJPHiPrimitive.__init__(self)

        def expand(self, q):
            return q.qvalue.astype("float32") * q.scale[..., None]

    class Product(hijax.VJPHiPrimitive):
        def __init__(self, x, q):
            self.in_avals, self.out_aval, self.params = (x, q), float32((x.shape[0], q.shape[1])), {}
            super().__init__()

        def expand(self, x, q):
            return (x * q.scale) @ q.qvalue.astype(jnp.float32)

        vjp_fwd = lambda self, nzs, x, q: (self(x, q), (x, q))

        def vjp_bwd_retval(self, res, g):
            x, q = res
            return g @ dequantize(q).T, x.T @ g

    quantize = lambda x: Quantize(jax.typeof(x))(x)
    dequantize = lambda q: Dequantize(jax.typeof(q))(q)
    return quantize, dequantize, lambda x, q: Product(jax.typeof(x), jax.typeof(q))(x, q), Ty, Spec


X = np.array([[1, 2, 3], [4, -5, 6]], np.float32)


def test_values_under_jit_and_derivatives(jax, jnp, quantized):
    quantize, dequantize, times, Ty, _ = quantized
    q, x = quantize(jnp.asarray(X)), jnp.asarray(X)
    assert jax.typeof(q) == Ty((2, 3)) and isinstance(jax.jit(quantize)(x), QArray)
    near = np.asarray(dequantize(q))
    np.testing.assert_allclose(near, X, atol=0.05)
    for run, inside in itertools.product((lambda f: f, jax.jit), repeat=2):
        there_and_back = inside(lambda x: (dequantize(quantize(x)) ** 2).sum())
        np.testing.assert_allclose(run(there_and_back)(x), (near**2).sum(), rtol=1e-6)
        np.testing.assert_allclose(run(jax.grad(there_and_back))(x), 2 * near, rtol=1e-6)
        np.testing.assert_allclose(run(jax.grad(inside(lambda q: (dequantize(q) ** 2).sum())))(q), 2 * near, rtol=1e-6)
        np.testing.assert_allclose(run(lambda x: jax.jvp(there_and_back, (x,), (x,))[1])(x), 2 * (near * X).sum(), rtol=1e-6)
        w = quantize(jnp.ones((3, 2)))
        for grads in (run(jax.grad(inside(lambda x, w: times(x, w).sum()), (0, 1)))(x, w), jax.vjp(lambda x, w: times(x, w).sum(), x, w)[1](jnp.float32(1))):
            np.testing.assert_allclose(grads[0], np.full((2, 3), 2.0), rtol=1e-5)
            np.testing.assert_allclose(grads[1], X.sum(0)[:, None] * np.ones((1, 2)), rtol=1e-5)


def test_values_in_loops_and_branches(jax, jnp, quantized):
    quantize, dequantize, _, Ty, _ = quantized
    xs = jnp.arange(24.0).reshape(4, 2, 3) + 1
    qs = quantize(xs)
    total = jax.lax.scan(lambda t, q: (t + dequantize(q).sum(), None), 0.0, qs)[0]
    np.testing.assert_allclose(total, dequantize(qs).sum(), rtol=1e-6)
    step = lambda q, x: (quantize(dequantize(q) + x), quantize(2 * x))
    last, made = jax.lax.scan(step, quantize(jnp.ones((2, 3))), xs)
    assert jax.typeof(last) == Ty((2, 3)) and jax.typeof(made) == Ty((4, 2, 3))
    np.testing.assert_array_equal(dequantize(made), dequantize(quantize(2 * xs)))
    slope = jax.grad(lambda xs: dequantize(jax.lax.scan(step, quantize(jnp.ones((2, 3))), xs)[0]).sum())(xs)
    np.testing.assert_array_equal(slope, np.ones((4, 2, 3)))
    for pred in (True, False):
        q = jax.lax.cond(pred, lambda q: q, lambda q: quantize(2 * dequantize(q)), quantize(jnp.asarray(X)))
        np.testing.assert_allclose(dequantize(q), X if pred else 2 * X, atol=0.1)


@pytest.mark.parametrize("axis", [0, 1])
def test_values_under_vmap(jax, jnp, quantized, axis):
    quantize, dequantize, _, Ty, Spec = quantized
    xs = jnp.moveaxis(jnp.arange(24.0).reshape(4, 2, 3) + 1, 0, axis)
    qs = jax.vmap(quantize, axis, Spec(axis))(xs)
    assert jax.typeof(qs) == Ty(tuple(xs.shape))
    np.testing.assert_allclose(dequantize(qs), xs, atol=0.1)
    for f in (dequantize, jax.jit(dequantize)):
        back = jax.vmap(f, Spec(axis), axis, axis_size=4)(qs)
        np.testing.assert_array_equal(back, dequantize(qs))
    slopes = jax.vmap(jax.grad(lambda x: (dequantize(quantize(x)) ** 2).sum()), axis, axis)(xs)
    np.testing.assert_allclose(slopes, 2 * np.asarray(dequantize(qs)), rtol=1e-5)
    total = jax.grad(lambda xs: (jax.vmap(dequantize, Spec(axis), axis, axis_size=4)(jax.vmap(quantize, axis, Spec(axis))(xs)) ** 2).sum())(xs)
    np.testing.assert_allclose(total, slopes, rtol=1e-6)


class Box:
    """A mutable value: a number that operations read and write. It has slots, and no place for other attributes."""

    __slots__ = ("number",)

    def cur_qdd(self):
        import ferrax as jax

        return jax.typeof(self.number)


@pytest.fixture(scope="module")
def boxes(hijax):
    class Ty(hijax.MutableHiType):
        def __hash__(self):
            return hash(Ty)

        def __eq__(self, other):
            return isinstance(other, Ty)

        def lo_ty_qdd(self, state):
            return [state]

        def new_from_loval(self, state, number):
            box = Box()
            box.number = number
            return box

        def read_loval(self, state, box):
            return [get.bind(box)]

        def update_from_loval(self, state, box, number):
            put.bind(box, number)

    class New(hijax.HiPrimitive):
        def to_lojax(self, number):
            return Ty().new_from_loval(None, number)

    class Get(hijax.HiPrimitive):
        def to_lojax(self, box):
            return box.number

    class Put(hijax.HiPrimitive):
        multiple_results = True

        def to_lojax(self, box, number):
            box.number = number
            return []

    new, get, put = New("new"), Get("get"), Put("put")
    hijax.register_hitype(Box, lambda box: Ty())
    return new, get, put


def test_mutable_values(jax, jnp, boxes):
    new, get, put = boxes
    box = new.bind(jnp.float32(1))

    def double(box):
        put.bind(box, get.bind(box) * 2)

    double(box)
    assert get.bind(box) == 2
    jitted = jax.jit(double)
    jitted(box), jitted(box)
    assert get.bind(box) == 8
    captured = jax.jit(lambda: double(box))
    captured(), captured()
    assert get.bind(box) == 32
    jax.jit(lambda: jax.jit(lambda: double(box))())()
    assert get.bind(box) == 64
    jax.lax.scan(lambda c, _: (double(box), (c, None))[1], 0, None, length=3)
    assert get.bind(box) == 512
    assert jax.jit(lambda x: (box := new.bind(x), double(box), get.bind(box))[2])(jnp.float32(3)) == 6
    assert jax.grad(lambda x: (box := new.bind(x), double(box), get.bind(box) ** 2)[2])(jnp.float32(3)) == 24


def test_references_of_forgotten_values_are_forgotten(jnp, boxes):
    from ferrax.compat._src.hijax import values as _hivalues

    new, get, _ = boxes
    for i in range(1000):
        assert get.bind(new.bind(jnp.float32(i))) == i
    assert len(_hivalues._references._of) < 500
