"""Kernels over fields with a short vertical axis, and loops that cut windows: ocean and atmosphere models, convolutions written by hand.

Each is written from its mathematics, as users write it, at three sizes in float32 and in float64 (with 64-bit indices). Horizontal sizes are n x n, columns
have from 4 to 12 levels.
"""

import numpy as np

from workloads.nests import nest

FIELDS = "fields with short columns"
LOOPED_WINDOWS = "windows cut in loops"


def levels(n):
    return max(4, n // 7)


def field(n, x, *more):
    return x(n, n, levels(n), *more)


@nest(FIELDS, "density by a rational polynomial", (32, 51, 81), lambda n, x: (30 + 5 * field(n, x), 20 * field(n, x), 100 * field(n, x)))
def density(lib, salt, temperature, pressure):
    """Numerator and denominator are polynomials in three variables and a square root; its logarithmic derivative too."""
    root = lib.np.sqrt(lib.np.maximum(salt, 0))
    t, p = temperature, pressure
    above = 999.8 + t * (6.8e-2 + t * (-9.1e-3 + t * (1e-4 - 1.1e-6 * t)))
    above = above + salt * (0.82 + t * (-4.1e-3 + t * 7.6e-5) + root * (-5.7e-3 + 1e-4 * t) + 4.8e-4 * salt)
    below = 1 + p * (5e-6 + t * (-3e-8 + 2e-10 * t)) + p * p * (1e-11 + salt * root * 1e-13)
    rho = above / below
    expansion = (6.8e-2 + t * (-1.8e-2 + t * (3e-4 - 4.4e-6 * t)) + salt * (-4.1e-3 + 1.5e-4 * t)) / rho
    return rho, expansion, rho * lib.np.exp(-p * 1e-4) + lib.np.log1p(salt)


def mixing_data(n, x):
    k = levels(n)
    mask = (field(n, x) > 0.2).astype(x().dtype)
    return (mask, x(n) + 1, x(n) + 1, x(k) + 1, 20 * field(n, x, 3), 35 + field(n, x, 3), field(n, x))


@nest(FIELDS, "mixing along slopes of density", (32, 51, 81), mixing_data, tolerance=1e-2)
def mixing(lib, mask, dx, dy, dz, temperature, salt, diffusivity):
    """Gradients of two tracers between cells, slopes of density from four neighbours each, tapered, and what they mix."""
    np_ = lib.np
    t, s = temperature[..., 0], salt[..., 0]
    zero = np_.zeros_like(mask)
    by_t = -mask * (1e-2 * (t - 9.85) + 0.17)
    by_s = 0.8 * mask

    def gradients(a):
        along_z = zero.at[:, :, :-1].set(mask[:, :, :-1] * (a[:, :, 1:] - a[:, :, :-1]) / dz[:-1])
        along_x = zero.at[:-1].set(mask[:-1] * (a[1:] - a[:-1]) / dx[:-1, None, None])
        along_y = zero.at[:, :-1].set(mask[:, :-1] * (a[:, 1:] - a[:, :-1]) / dy[None, :-1, None])
        return along_x, along_y, along_z

    (tx, ty, tz), (sx, sy, sz) = gradients(t), gradients(s)
    inner = slice(2, -2)
    slopes = np_.zeros((*mask.shape, 2, 2), mask.dtype)
    mixed = np_.zeros_like(mask)[inner, inner, :-1]
    for k in range(2):
        z = slice(k, (k - 1) or None)
        bt, bs = by_t[inner, inner, z], by_s[inner, inner, z]
        down = bt * tz[inner, inner, :-1] + bs * sz[inner, inner, :-1]
        for i in range(2):
            shifted = slice(1 + i, i - 3)
            for across in (bt * tx[shifted, inner, z] + bs * sx[shifted, inner, z], bt * ty[inner, shifted, z] + bs * sy[inner, shifted, z]):
                slope = -across / (np_.minimum(0, down) - 1e-6)
                taper = 0.5 * (1 + np_.tanh((1e-3 - np_.abs(slope)) / 1e-3))
                mixed = mixed + diffusivity[inner, inner, :-1] * taper * slope**2
            slopes = slopes.at[inner, inner, :-1, i, k].set(taper * slope * mask[inner, inner, :-1])
    return zero.at[inner, inner, :-1].set(mixed / 4).at[inner, inner, -1].set(0), slopes


def turbulence_data(n, x):
    k = levels(n)
    depth = (k * x(n, n)).astype(np.int32)
    return (field(n, x, 3), field(n, x), field(n, x) + 1, field(n, x), x(n) + 1, x(k) + 1, depth)


@nest(FIELDS, "turbulent energy, implicit along columns", (32, 51, 81), turbulence_data, tolerance=1e-2)
def turbulence(lib, energy, viscosity, length, forcing, dx, dz, depth):
    """A tridiagonal system for each column of water, solved by scans over levels, then diffusion sideways."""
    np_, lax = lib.np, lib.lax
    e = energy[..., 0]
    zero = np_.zeros_like(e)
    flux = zero.at[:, :, :-1].set(0.5 * (viscosity[:, :, :-1] + viscosity[:, :, 1:]) / dz[1:])
    lower = zero.at[:, :, 1:].set(-flux[:, :, :-1] / dz[1:])
    upper = zero.at[:, :, :-1].set(-flux[:, :, :-1] / dz[:-1])
    middle = 1 - lower - upper + 0.7 * np_.sqrt(np_.maximum(e, 0)) / length
    right = (e + forcing).at[:, :, -1].add(0.1 / dz[-1])
    water = np_.arange(e.shape[2]) >= depth[:, :, None]
    lower, upper = water * lower, water * upper
    middle, right = np_.where(water, middle, 1), water * right

    def down(s, row):
        (c, d), (a, b, u, r) = s, row
        new = np_.stack([u / (b - a * c), (r - a * d) / (b - a * c)])
        return new, new

    rows = np_.stack([a.transpose(2, 0, 1) for a in (lower, middle, upper, right)], axis=1)
    _, factors = lax.scan(down, np_.zeros((2, *e.shape[:2]), e.dtype), rows)

    def up(x, row):
        x = row[1] - row[0] * x
        return x, x

    _, solved = lax.scan(up, np_.zeros(e.shape[:2], e.dtype), factors[::-1])
    new = np_.where(water, solved[::-1].transpose(1, 2, 0), e)
    east = zero.at[:-1].set((e[1:] - e[:-1]) / dx[:-1, None, None])
    north = zero.at[:, :-1].set((e[:, 1:] - e[:, :-1]) / dx[None, :-1, None])
    spread = (east[1:-1, 1:-1] - east[:-2, 1:-1]) / dx[1:-1, None, None] + (north[1:-1, 1:-1] - north[1:-1, :-2]) / dx[None, 1:-1, None]
    return energy.at[1:-1, 1:-1, :, 1].set(new[1:-1, 1:-1] + spread)


def advection_data(n, x):
    return (field(n, x) - 0.5, field(n, x), (field(n, x) > 0.1).astype(x().dtype), x(n) + 1)


@nest(FIELDS, "advection with a limiter of slopes", (32, 51, 81), advection_data)
def advection(lib, velocity, tracer, mask, dx):
    """Fluxes between cells along each axis, limited by the ratio of neighbouring differences."""
    np_ = lib.np
    out = np_.zeros_like(tracer)
    for axis in range(3):
        n = tracer.shape[axis]

        def cut(a, first, n=n, axis=axis):
            index = [slice(None)] * 3
            index[axis] = slice(first, n - 3 + first)
            return a[tuple(index)]

        v = cut(velocity, 1)
        before, here, behind = (cut(mask, k) * (cut(tracer, k + 1) - cut(tracer, k)) for k in range(3))
        ratio = np_.where(v > 0, before, behind) / np_.where(np_.abs(here) < 1e-6, 1e-6, here)
        limit = np_.maximum(0, np_.maximum(np_.minimum(1, 2 * ratio), np_.minimum(2, ratio)))
        courant = np_.abs(v) * 0.1 / dx[0]
        flux = v * (cut(tracer, 1) + cut(tracer, 2)) / 2 - np_.abs(v) * (1 - limit + courant * limit) * here / 2
        at = [slice(None)] * 3
        at[axis] = slice(1, n - 2)
        whole = np_.zeros_like(tracer).at[tuple(at)].set(flux)
        out = out - (whole - np_.roll(whole, 1, axis))
    return out


def convolved(lib, image, weights):
    """A loop over rows and one over columns, each of which cuts a window and puts one element of all channels."""
    lax, np_ = lib.lax, lib.np
    side, n, height, width = weights.shape[0], image.shape[0], image.shape[1] - weights.shape[0] + 1, image.shape[2] - weights.shape[0] + 1

    def row(i, out):
        def column(j, out):
            window = lax.dynamic_slice(image, (0, i, j, 0), (n, side, side, image.shape[3]))
            sums = np_.sum(window[..., None] * weights[None], axis=(1, 2, 3))
            return lax.dynamic_update_slice(out, sums[:, None, None, :], (0, i, j, 0))

        return lax.fori_loop(0, width, column, out)

    return lax.fori_loop(0, height, row, np_.zeros((n, height, width, weights.shape[3]), image.dtype))


@nest(LOOPED_WINDOWS, "two convolutions and greatest of windows", (12, 20, 28), lambda n, x: (x(4, n, n, 1), x(5, 5, 1, 6), x(3, 3, 6, 16)))
def letters(lib, image, first, second):
    lax, np_ = lib.lax, lib.np

    def pooled(a):
        n, h, w, c = a.shape

        def row(i, out):
            def column(j, out):
                window = lax.dynamic_slice(a, (0, 2 * i, 2 * j, 0), (n, 2, 2, c))
                return lax.dynamic_update_slice(out, np_.max(window, axis=(1, 2))[:, None, None, :], (0, i, j, 0))

            return lax.fori_loop(0, w // 2, column, out)

        return lax.fori_loop(0, h // 2, row, np_.zeros((n, h // 2, w // 2, c), a.dtype))

    a = pooled(np_.maximum(convolved(lib, image, first), 0))
    return np_.maximum(convolved(lib, a, second), 0)


@nest(
    LOOPED_WINDOWS,
    "residual block of convolutions",
    (8, 14, 28),
    lambda n, x: (x(2, n, n, 32), x(1, 1, 32, 8), x(3, 3, 8, 8), x(1, 1, 8, 32)),
    tolerance=1e-2,
)
def residual(lib, a, narrow, middle, wide):
    np_ = lib.np

    def normalized(a):
        return (a - np_.mean(a, axis=0)) / np_.sqrt(np_.var(a, axis=0) + 1e-3)

    b = np_.pad(convolved(lib, a, narrow), ((0, 0), (1, 1), (1, 1), (0, 0)))
    b = np_.maximum(normalized(b), 0)
    b = np_.maximum(normalized(convolved(lib, b, middle)), 0)
    return np_.maximum(normalized(convolved(lib, b, wide)) + a, 0)
