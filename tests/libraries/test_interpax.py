"""interpax: interpolation in one to three dimensions, its derivatives, splines, Fourier interpolation."""

import interpax
import jax
import jax.numpy as jnp
import pytest
from outcomes import Programs


def programs(t):
    x = jnp.linspace(0, 2, 9)
    f = jnp.sin(x)
    q = jnp.linspace(0.1, 1.9, 6)
    for m in "nearest linear cubic cubic2 catmull-rom cardinal monotonic monotonic-0 akima".split():
        t("1d " + m, lambda m=m: interpax.interp1d(q, x, f, method=m))
        t("1d grad " + m, lambda m=m: jax.grad(lambda f: interpax.interp1d(q, x, f, method=m).sum())(f))
        t("1d dx " + m, lambda m=m: interpax.interp1d(q, x, f, method=m, derivative=1))
        t("2d " + m, lambda m=m: interpax.interp2d(q, q, x, x, f[:, None] * f[None], method=m if m not in ("akima", "monotonic", "monotonic-0") else "linear"))
    t("3d", lambda: interpax.interp3d(q, q, q, x, x, x, f[:, None, None] * f[None, :, None] * f, method="cubic"))
    t("cls", lambda: interpax.Interpolator1D(x, f, method="cubic")(q))
    t("period", lambda: interpax.interp1d(q + 5, x, f, period=2.0, method="cubic"))
    t("extrap", lambda: interpax.interp1d(q + 1, x, f, extrap=True))
    t("fft", lambda: interpax.fft_interp1d(f[:8], 16))
    t("fft2", lambda: interpax.fft_interp2d(f[:8, None] * f[None, :8], 16, 10))
    t("CubicSpline", lambda: interpax.CubicSpline(x, f)(q))
    t("Akima", lambda: interpax.Akima1DInterpolator(x, f)(q))
    t("pchip", lambda: interpax.PchipInterpolator(x, f)(q, nu=1))
    t("ppoly", lambda: interpax.CubicSpline(x, f, bc_type="natural").integrate(0.0, 1.0))
    t("approx", lambda: interpax.approx_df(x, f, "cubic2", 0))


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_interpax(name):
    PROGRAMS.check(name)
