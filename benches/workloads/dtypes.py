"""The same operations in narrow dtypes and in complex numbers."""

import ml_dtypes
import numpy as np

from workloads.registry import plain

RANDOM = np.random.default_rng(0)  # these rows' own
INTEGERS = ("uint8", "int8", "int16", "uint16", "int32")
NARROW = (*INTEGERS[:4], "bfloat16", "float16")
COMPLEX = ("complex64", "complex128")


def numbers(dtype, *shape):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind.kind in "iu":
        return RANDOM.integers(0, 100, shape).astype(kind)
    x = RANDOM.standard_normal(shape)
    return (x + 1j * RANDOM.standard_normal(shape) if kind.kind == "c" else x).astype(kind)


def rows(text, f, dtypes, *shapes, tolerance=2e-2):
    """A row of `f(lib, *arrays)` for each dtype."""
    for dtype in dtypes:
        facts = {"dtype": dtype, "x64": dtype == "complex128", "tolerance": tolerance}
        plain("narrow" if dtype not in COMPLEX else "complex", f"{text}, {dtype}", f, *(numbers(dtype, *s) for s in shapes), **facts)


def window(lib, x):
    return x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]


def steps(lib, x):
    return lib.lax.fori_loop(0, 20, lambda i, x: x.at[1:-1, 1:-1].set(x[:-2, 1:-1] + x[2:, 1:-1] - x[1:-1, :-2]), x)


def scattered(lib, x):
    return lib.np.zeros(1000, x.dtype).at[(lib.np.arange(x.size) * 977) % 1000].add(x)


def segments(lib, x):
    return lib.ops.segment_sum(x, lib.np.arange(x.size) // 64, x.size // 64)


rows("sum of two, 512 x 512", lambda lib, x, y: x + y, NARROW, (512, 512), (512, 512))
rows("scale and clip, 512 x 512", lambda lib, x: lib.np.clip(x * 3 + 1, 5, 90), NARROW, (512, 512))
rows("choice, 512 x 512", lambda lib, x, y: lib.np.where(x > y, x, y - x), NARROW, (512, 512), (512, 512))
rows("cross of five, 512 x 512", window, NARROW, (512, 512))
rows("20 steps of a cross, 128 x 128", steps, NARROW[:5], (128, 128))
rows("greatest of rows, 512 x 512", lambda lib, x: x.max(1), NARROW, (512, 512))
rows("to float32 and back, 512 x 512", lambda lib, x: (x.astype(lib.np.float32) * 0.5).astype(x.dtype), NARROW, (512, 512))
rows("sums at 1,000 positions, 65536", scattered, INTEGERS, (65536,))
rows("sums of segments of 64, 65536", segments, INTEGERS, (65536,))
rows("matrix by vector, 512", lambda lib, a, x: a @ x, INTEGERS, (512, 512), (512,))
rows("inner product, 65536", lambda lib, x, y: lib.np.vdot(x, y), INTEGERS, (65536,), (65536,))
rows("grey of three channels, 480 x 640", lambda lib, x: (x[..., 0] >> 2) + (x[..., 1] >> 1) + (x[..., 2] >> 2), INTEGERS[:4], (480, 640, 3))

rows("square and add, 262144", lambda lib, z, c: z * z + c, COMPLEX, (262144,), (262144,), tolerance=1e-5)
rows("by real numbers, 262144", lambda lib, z: z * z.real, COMPLEX, (262144,), tolerance=1e-5)
rows("absolute squares, 262144", lambda lib, z: (z * z.conj()).real, COMPLEX, (262144,), tolerance=1e-5)
rows("sums of rows, 512 x 512", lambda lib, z: z.sum(1), COMPLEX, (512, 512), tolerance=1e-4)
rows("sums of columns, 512 x 512", lambda lib, z: z.sum(0), COMPLEX, (512, 512), tolerance=1e-4)
rows("every second and its neighbour, 262144", lambda lib, z: z[::2] - z[1::2], (*COMPLEX, "float32", "int32"), (262144,), tolerance=1e-5)
rows("transposed and added, 512 x 512", lambda lib, z: z.T + z, COMPLEX, (512, 512), tolerance=1e-5)
rows("spectrum times factors, 64 x 1024", lambda lib, z: lib.np.fft.ifft(lib.np.fft.fft(z) * z), COMPLEX, (64, 1024), tolerance=1e-3)


def product(to):
    return lambda lib, a, b: lib.lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=to)


def at(lib, x):
    return x[(lib.np.arange(x.shape[0]) * 977) % x.shape[0]]


rows("running sums, 262144", lambda lib, x: lib.lax.cumsum(x), INTEGERS, (262144,))
rows("running maxima of 4 columns, 65536", lambda lib, x: lib.lax.cummax(x), NARROW, (65536, 4))
rows("products with int32 sums, 256", product("int32"), INTEGERS[:4], (256, 256), (256, 256))
rows("shifts, 512 x 512", lambda lib, x, y: (x << 2) ^ (y >> (x & 7)), INTEGERS, (512, 512), (512, 512))
rows("counts of bits, 512 x 512", lambda lib, x: lib.lax.population_count(x) + lib.lax.clz(x), INTEGERS, (512, 512))
rows("elements at positions, 262144", at, (*NARROW, *COMPLEX), (262144,))
rows("rows at positions, 2048 x 64", at, (*NARROW, *COMPLEX), (2048, 64))
rows("concatenated columns, 512 x 512", lambda lib, x, y: lib.np.concatenate([x, y], 1), (*NARROW, *COMPLEX), (512, 256), (512, 256))
rows("rolled and padded, 512 x 512", lambda lib, x: lib.np.pad(lib.np.roll(x, 5, 1), 2), (*NARROW, *COMPLEX), (512, 512))
