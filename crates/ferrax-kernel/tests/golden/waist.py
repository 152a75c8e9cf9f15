"""What JAX answers to the functions of the waist, one case a line: `python waist.py > waist.txt` (JAX 0.10.2, CPU).

A line is `name key=value .. | operand .. | result ..`; an array is `dtype:hex` of its little-endian bytes. The last key, `rtol`, says
how near a result must come (0: bit for bit, but for the bits of a nan).
"""
import os

os.environ["JAX_ENABLE_X64"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
import ml_dtypes
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax

SHORT = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
         "uint64": "u64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
rng = np.random.default_rng(0)


def short(x):
    return SHORT[np.dtype(x).name]


def array(x):
    x = np.asarray(x)
    return f"{short(x.dtype)}:{np.ascontiguousarray(x).tobytes().hex()}"


def value(v):
    if isinstance(v, (list, tuple)):
        return ",".join(map(value, v))
    if isinstance(v, bool):
        return str(int(v))
    return str(v)


def case(name, params, ins, outs, rtol=0):
    words = [name, *(f"{k}={value(v)}" for k, v in params.items()), f"rtol={rtol}", "|", *map(array, ins), "|", *map(array, outs)]
    print(" ".join(words))


def edges(d):
    d = np.dtype(d)
    if d == bool:
        return np.array([False, True])
    if d.kind in "iu":
        i = np.iinfo(d)
        return np.array([i.min, i.min + 1, i.max, 0, 1, 2, 7, 8, *((-1, -2, -7, -100) if i.min else (200, 16, 31, 33)), 100, i.max - 1, 3, 5], d)
    f = ml_dtypes.finfo(d)
    return np.array([0., -0., 1, -1, np.inf, -np.inf, np.nan, f.max, f.min, f.tiny, 2.25, 2.5, -3.7, 0.1, 0.5, -0.5, 1.5, -2.5, 3.7, 65504, 2049], d)


def pairs(x):
    x = x[:14]
    a, b = np.meshgrid(x, x, indexing="ij")
    return a.ravel(), b.ravel()


def scalar_functions():
    exact = {"neg": lax.neg, "abs": lax.abs, "sign": lax.sign, "floor": lax.floor, "ceil": lax.ceil, "sqrt": lax.sqrt, "is_finite": lax.is_finite,
             "round_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), "round_away": lax.round, "trunc": jnp.trunc}
    near = {n: getattr(lax, n) for n in "rsqrt cbrt exp exp2 expm1 log log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh logistic "
            "erf erfc erf_inv lgamma digamma".split()}
    for d in FLOATS:
        for n, f in exact.items():
            case("un", {"f": n}, [edges(d)], [f(edges(d))])
        for n, f in near.items():
            x = np.concatenate([np.array([0., 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 1.5, -2.5, 0.1, 3.7, -3.7, 9.25, *((20, -20) if np.dtype(d).itemsize > 2 else ())], d), rng.uniform(-1, 1, 8).astype(d)])
            case("un", {"f": n}, [x], [f(x)], {"f16": 3e-3, "bf16": 1e-2, "f32": 5e-6, "f64": 1e-9}[short(d)])
    for d in INTS:
        for n in ("abs", "sign", "neg")[0 if np.iinfo(d).min else 1:]:
            case("un", {"f": n}, [edges(d)], [getattr(lax, n)(edges(d))])
    for d in [bool, *INTS]:
        case("un", {"f": "not"}, [edges(d)], [lax.bitwise_not(edges(d))])
    for d in INTS:
        case("un", {"f": "popcnt"}, [edges(d)], [lax.population_count(edges(d))])
        case("un", {"f": "clz"}, [edges(d)], [lax.clz(edges(d))])
    compare = {n: getattr(lax, n) for n in "eq ne lt le gt ge".split()}
    for d in [bool, *INTS, *FLOATS]:
        x, y = pairs(edges(d))
        for n, f in {**compare, "max": lax.max, "min": lax.min}.items():
            case("bin", {"f": n}, [x, y], [f(x, y)])
    for d in FLOATS:
        x, y = pairs(edges(d))
        for n in "add sub mul div rem nextafter".split():
            case("bin", {"f": n}, [x, y], [getattr(lax, n)(x, y)])
        for n in "pow atan2".split():
            case("bin", {"f": n}, [x, y], [getattr(lax, n)(x, y)], {"f16": 3e-3, "bf16": 1e-2, "f32": 5e-6, "f64": 1e-9}[short(d)])
    for d in INTS:
        x, y = pairs(edges(d))
        for n, f in {"add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "rem": lax.rem, "shl": lax.shift_left,
                     "shr_logical": lax.shift_right_logical, "shr_arithmetic": lax.shift_right_arithmetic}.items():
            case("bin", {"f": n}, [x, y], [f(x, y)])
    for d in [bool, *INTS]:
        x, y = pairs(edges(d))
        for n in "and or xor".split():
            case("bin", {"f": n}, [x, y], [getattr(lax, "bitwise_" + n)(x, y)])
    for a in [bool, *INTS, *FLOATS]:
        for b in [bool, *INTS, *FLOATS]:
            x = edges(a)
            case("convert", {"to": short(b)}, [x], [lax.convert_element_type(x, b)])
    for e, m in [(5, 10), (8, 7), (8, 0), (1, 3), (4, 3), (8, 23), (11, 52), (5, 2), (2, 23)]:
        for d in (np.float32, np.float64):
            x = np.concatenate([edges(d), rng.normal(size=20).astype(d), (rng.normal(size=20) * 1e-5).astype(d), (rng.normal(size=10) * 1e5).astype(d)])
            case("round", {"exponent": e, "mantissa": m}, [x], [lax.reduce_precision(x, e, m)])


def gathers():
    for mode in ("clip", "fill"):
        for index in (np.int32, np.uint32, np.int64, np.uint8):
            def one(operand, indices, sizes, offset, collapsed, start_map, batch=(), index_batch=()):
                x = np.arange(1, 1 + np.prod(operand), dtype=np.float32).reshape(operand)
                i = np.asarray(indices).astype(index)
                dims = lax.GatherDimensionNumbers(offset_dims=offset, collapsed_slice_dims=collapsed, start_index_map=start_map,
                                                  operand_batching_dims=batch, start_indices_batching_dims=index_batch)
                out = lax.gather(x, i, dims, sizes, mode=mode, fill_value=-5.0)
                case("gather", dict(operand=operand, indices=i.shape, sizes=sizes, offset=offset, collapsed=collapsed, map=start_map,
                                    batch=batch, index_batch=index_batch, mode=mode, out=out.shape), [x, i], [out])
            one((5, 4), [[0], [4], [5], [-1], [2]], (1, 4), (1,), (0,), (0,))
            one((5, 4), [[0], [3], [4], [-7], [100]], (2, 3), (0, 2), (), (0,))
            one((5, 4), [[0, 0], [3, 1], [4, 3], [-1, 2], [2, 9]], (2, 3), (1, 2), (), (0, 1))
            one((5, 4), [[[0, 1], [3, 1]], [[4, 3], [1, 0]]], (1, 1), (), (0, 1), (1, 0))
            one((3, 4, 2), [[[1], [0]], [[3], [4]], [[-1], [2]]], (1, 1, 2), (2,), (1,), (1,), (0,), (0,))
            one((3, 4, 2), [[[1], [0], [7]], [[3], [4], [2]]], (1, 2, 1), (0,), (2,), (1,), (0,), (1,))
            one((4,), np.zeros((0, 1)), (2,), (1,), (), (0,))


def scatters():
    functions = {"set": lax.scatter, "sum": lax.scatter_add, "prod": lax.scatter_mul, "min": lax.scatter_min, "max": lax.scatter_max, "sub": lax.scatter_sub}
    for mode in ("clip", "fill"):
        for how, f in functions.items():
            for d in (np.float32, np.int32, np.uint8, ml_dtypes.bfloat16):
                def one(operand, indices, updates, window, inserted, index_map, batch=(), index_batch=()):
                    x = rng.integers(1, 9, operand).astype(d)
                    i = np.asarray(indices, np.int32)
                    u = rng.integers(1, 9, updates).astype(d)
                    dims = lax.ScatterDimensionNumbers(update_window_dims=window, inserted_window_dims=inserted, scatter_dims_to_operand_dims=index_map,
                                                       operand_batching_dims=batch, scatter_indices_batching_dims=index_batch)
                    out = f(x, i, u, dims, mode=mode)
                    case("scatter", dict(operand=operand, indices=i.shape, updates=updates, window=window, inserted=inserted, map=index_map, batch=batch,
                                         index_batch=index_batch, mode=mode, how=how), [x, i, u], [out])
                one((5,), [[0], [2], [2], [5], [-1], [4]], (6,), (), (0,), (0,))
                one((5, 4), [[0], [3], [4], [-7], [100]], (5, 2, 3), (1, 2), (), (0,))
                one((5, 4), [[0, 0], [3, 1], [4, 3], [-1, 2], [2, 9]], (2, 5), (0,), (1,), (1, 0))
                one((3, 4, 2), [[[1], [0]], [[3], [4]], [[-1], [2]]], (3, 2, 2), (2,), (1,), (1,), (0,), (0,))


def dynamic_slices():
    x = np.arange(20, dtype=np.int16).reshape(5, 4)
    for starts in [(0, 0), (1, 2), (4, 4), (-1, 1), (-100, 100)]:
        i = [np.int32(s) for s in starts]
        case("dynamic_slice", dict(operand=(5, 4), sizes=(2, 3)), [x, *i], [lax.dynamic_slice(x, np.clip(starts, 0, [3, 1]), (2, 3))])
        u = -np.arange(1, 7, dtype=np.int16).reshape(2, 3)
        case("dynamic_update_slice", dict(operand=(5, 4), update=(2, 3)), [x, u, *i], [lax.dynamic_update_slice(x, u, np.clip(starts, 0, [3, 1]))])


def sorts():
    nan, inf = np.nan, np.inf
    for d in FLOATS:
        x = np.array([[3, nan, -0., 0., -inf, 1, inf, nan, -1], [0., -0., 0., -0., 5, 4, 3, 2, 1]], d)
        y = np.arange(18, dtype=np.int32).reshape(2, 9)
        case("sort", dict(outer=2, n=9, inner=1, num_keys=1), [x, y], lax.sort((x, y), dimension=1, is_stable=True, num_keys=1))
        case("sort", dict(outer=1, n=2, inner=9, num_keys=1), [x, y], lax.sort((x, y), dimension=0, is_stable=True, num_keys=1))
    for d in [bool, *INTS]:
        x = np.resize(edges(d), 24).reshape(2, 6, 2)
        case("sort", dict(outer=2, n=6, inner=2, num_keys=1), [x], lax.sort((x,), dimension=1))
    a, b, c = (rng.integers(0, 3, 30).astype(np.int32), rng.integers(0, 3, 30).astype(np.float32), np.arange(30, dtype=np.int64))
    case("sort", dict(outer=1, n=30, inner=1, num_keys=2), [a, b, c], lax.sort((a, b, c), num_keys=2))


def cumulatives():
    kinds = {"sum": lax.cumsum, "prod": lax.cumprod, "max": lax.cummax, "min": lax.cummin}
    for reverse in (False, True):
        for n, f in kinds.items():
            x = rng.integers(-3, 4, (2, 5, 3)).astype(np.int32)
            case("cumulative", dict(kind=n, outer=2, n=5, inner=3, reverse=reverse), [x], [f(x, axis=1, reverse=reverse)])
            x = rng.integers(-3, 4, (2, 5, 3)).astype(np.float32)
            x[0, 2, 1] = np.nan
            case("cumulative", dict(kind=n, outer=2, n=5, inner=3, reverse=reverse), [x], [f(x, axis=1, reverse=reverse)])
        x = rng.normal(size=(3, 6)) * 5
        x[1, :3], x[2, 1], x[2, 4] = -np.inf, np.inf, -np.inf
        case("cumulative", dict(kind="logsumexp", outer=3, n=6, inner=1, reverse=reverse), [x], [lax.cumlogsumexp(x, axis=1, reverse=reverse)], 1e-13)


def reductions():
    kinds = {"sum": lax.reduce_sum, "prod": lax.reduce_prod, "max": lax.reduce_max, "min": lax.reduce_min}
    for d in [*INTS, *FLOATS]:
        for n, f in kinds.items():
            for shape in [(3, 5), (2, 0)]:
                x = rng.integers(0, 4, shape).astype(d)
                case("reduce", dict(kind=n, shape=shape), [x], [f(x, axes=(1,))])
        x = np.tile(rng.permutation(edges(d)), (3, 1)).astype(d)
        if np.dtype(d).kind not in "iu":
            x[1] = np.where(np.isnan(x[1].astype(np.float64)), d(2), x[1])
            x[2] = d(0)
            x[2, 3] = d(-0.)
        for n, f in {"max": lax.reduce_max, "min": lax.reduce_min}.items():
            case("reduce", dict(kind=n, shape=x.shape), [x], [f(x, axes=(1,))])
        for n, f in {"argmax": lax.argmax, "argmin": lax.argmin}.items():
            case("reduce", dict(kind=n, shape=x.shape), [x], [f(x, 1, np.int32)])
    for d in [bool, *INTS]:
        x = np.tile(edges(d), (2, 1))
        x[1] = x[1, 1]
        for n in ("and", "or", "xor"):
            if d == bool and n == "xor":
                continue
            case("reduce", dict(kind=n, shape=x.shape), [x], [getattr(lax, "reduce_" + n)(x, axes=(1,))])
            case("reduce", dict(kind=n, shape=(2, 0)), [x[:, :0]], [getattr(lax, "reduce_" + n)(x[:, :0], axes=(1,))])


def windows():
    kinds = {"sum": (lax.add, 0), "prod": (lax.mul, 1), "max": (lax.max, None), "min": (lax.min, None)}
    for n, (f, start) in kinds.items():
        for d in (np.float32, np.int32, np.uint8):
            low, high = (-np.inf, np.inf) if d == np.float32 else (np.iinfo(d).min, np.iinfo(d).max)
            init = d({"max": low, "min": high}.get(n, start))
            x = rng.integers(1, 5, (5, 6)).astype(d)
            for window, strides, padding, base, dilation in [((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)), ((2, 3), (2, 1), ((1, 0), (2, 3)), (1, 1), (1, 1)),
                                                             ((3, 2), (1, 2), ((2, 2), (1, 1)), (2, 3), (1, 1)), ((2, 2), (1, 1), ((3, 1), (-1, 4)), (1, 2), (2, 3)),
                                                             ((1, 1), (1, 1), ((4, 0), (0, 4)), (1, 1), (1, 1))]:
                out = lax.reduce_window(x, init, f, window, strides, padding, base, dilation)
                case("reduce_window", dict(kind=n, operand=x.shape, window=window, strides=strides, base=base, dilation=dilation,
                                           padding=sum(padding, ()), out=out.shape), [x], [out])


def products():
    def one(x, y, out, dims=((2,), (1,))):
        z = lax.dot_general(x, y, (dims, ((0,), (0,))), preferred_element_type=out)
        b, m, k = x.shape
        case("dot", dict(b=b, m=m, n=y.shape[2], k=k, lhs=(m * k, k, 1), rhs=(k * y.shape[2], y.shape[2], 1), out=short(out)), [x, y], [z])
    for d, out in [(np.float32, np.float32), (np.float64, np.float64), (np.float16, np.float16), (ml_dtypes.bfloat16, np.float32), (np.float16, np.float32),
                   (np.int32, np.int32), (np.uint8, np.uint8), (np.int8, np.int32), (np.int64, np.int64), (np.int32, np.float32)]:
        for b, m, k, n in [(1, 2, 3, 4), (2, 5, 7, 1), (1, 3, 0, 2), (3, 1, 1, 1)]:
            one(rng.integers(0, 9, (b, m, k)).astype(d), rng.integers(0, 9, (b, k, n)).astype(d), out)
    one(rng.integers(0, 2, (2, 3, 4)).astype(bool), rng.integers(0, 2, (2, 4, 5)).astype(bool), bool)


def convolutions():
    for d in (np.float32, np.float64, np.int32):
        for x, w, strides, padding, ld, rd, fg, bg in [
            ((2, 3, 8), (4, 3, 3), (1,), ((0, 0),), (1,), (1,), 1, 1),
            ((2, 4, 7, 6), (6, 2, 3, 2), (2, 1), ((1, 2), (0, 1)), (1, 1), (1, 1), 2, 1),
            ((4, 3, 7), (6, 3, 3), (1,), ((1, 1),), (2,), (2,), 1, 2),
            ((2, 4, 5, 5), (4, 1, 2, 2), (1, 1), ((-1, 2), (3, -1)), (1, 2), (2, 1), 4, 1),
            ((1, 2), (3, 2), (), (), (), (), 1, 1),
        ]:
            a, b = rng.integers(-4, 5, x).astype(d), rng.integers(-4, 5, w).astype(d)
            out = lax.conv_general_dilated(a, b, strides, padding, ld, rd, feature_group_count=fg, batch_group_count=bg)
            case("conv", dict(lhs=x, rhs=w, out=out.shape, strides=strides, padding=sum(padding, ()), lhs_dilation=ld, rhs_dilation=rd,
                              feature_groups=fg, batch_groups=bg), [a, b], [out])


for part in (scalar_functions, gathers, scatters, dynamic_slices, sorts, cumulatives, reductions, windows, products, convolutions):
    part()
