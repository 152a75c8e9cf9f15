"""Rotations of space.

Invariant: a rotation is a unit quaternion (x, y, z, w), the scalar last; several rotations are an
array of these. q and -q are one rotation.
Formulas: M. D. Shuster, "A survey of attitude representations", Journal of the Astronautical
Sciences 41, 1993; Euler angles by E. Bernardes and S. Viollet, "Quaternion to Euler angles
conversion: a direct, general and computationally efficient method", PLoS ONE 17, 2022.

    >>> from ferrax.scipy.spatial.transform import Rotation
    >>> Rotation.from_euler("z", 90.0, degrees=True).apply(jnp.array([1.0, 0.0, 0.0])).round(6) + 0.0
    Array([0., 1., 0.], dtype=float32)
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ... import _core, lax, numpy as jnp, random
from ..._base.dtypes import to_inexact

if TYPE_CHECKING:
    from ..._core import Array
    from ...typing import DTypeLike

__all__ = ["Rotation", "Slerp"]


def _inexact(x):
    x = jnp.asarray(x)
    return x.astype(to_inexact(x.dtype))


def _unit(q):
    """`q` normalized; the result is never nan."""
    return q / jnp.sqrt((q * q).sum(-1, keepdims=True))


def _times(p, q):
    """The product of quaternions: first q, then p."""
    v = p[..., 3:] * q[..., :3] + q[..., 3:] * p[..., :3] + jnp.cross(p[..., :3], q[..., :3])
    w = p[..., 3:] * q[..., 3:] - (p[..., :3] * q[..., :3]).sum(-1, keepdims=True)
    return jnp.concatenate([v, w], axis=-1)


def _canonical(q):
    """Of q and -q the one whose scalar is above 0; if that is 0, whose first nonzero element of x,
    y, z is.
    """
    x, y, z, w = [q[..., k : k + 1] for k in range(4)]
    sign = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
    return jnp.where(sign < 0, -q, q)


def _from_rotvec(v):
    square = (v * v).sum(-1, keepdims=True)
    small = square < 1e-6
    angle = jnp.sqrt(jnp.where(small, 1, square))
    # sin(a / 2) / a, by its series where a is small: derivatives hold at 0 too
    scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840, jnp.sin(angle / 2) / angle)
    cosine = jnp.where(small, 1 - square / 8 + square * square / 384, jnp.cos(angle / 2))
    return jnp.concatenate([v * scale, cosine], axis=-1)


def _as_rotvec(q):
    q = _canonical(q)
    v, w = q[..., :3], q[..., 3:]
    square = (v * v).sum(-1, keepdims=True)
    small = square < 1e-7
    length = jnp.sqrt(jnp.where(small, 1, square))
    # a / sin(a / 2) = 2 asin(s) / s
    scale = jnp.where(small, 2 + square / 3 + 3 * square * square / 20, 2 * jnp.arctan2(length, w) / length)
    return v * scale


def _from_matrix(m):
    """The column of the matrix q q' whose diagonal is largest: S. W. Shepperd, Journal of Guidance
    and Control 1, 1978.
    """
    d = [m[..., k, k] for k in range(3)]
    trace = d[0] + d[1] + d[2]
    s = lambda i, j: m[..., i, j] + m[..., j, i]
    a = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    rows = [
        [1 - trace + 2 * d[0], s(0, 1), s(0, 2), a[0]],
        [s(0, 1), 1 - trace + 2 * d[1], s(1, 2), a[1]],
        [s(0, 2), s(1, 2), 1 - trace + 2 * d[2], a[2]],
        [a[0], a[1], a[2], 1 + trace],
    ]
    choice = jnp.argmax(jnp.stack([*d, trace], axis=-1), axis=-1)
    table = jnp.stack([jnp.stack(r, axis=-1) for r in rows], axis=-2)
    return _unit(jnp.take_along_axis(table, choice[..., None, None], axis=-2)[..., 0, :])


_AXES = {"x": 0, "y": 1, "z": 2}


def _sequence(seq):
    """The axes of rotations, and whether they turn with the body."""
    if not seq or len(seq) > 3:
        raise ValueError(f"Expected axis specification to be a non-empty string of upto 3 characters, got {seq}")
    if not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return [_AXES[c] for c in seq.lower()], seq.isupper()


def _about(axis, angle):
    """A rotation about a coordinate axis."""
    zero = jnp.zeros_like(angle)
    parts = [zero, zero, zero, jnp.cos(angle / 2)]
    parts[axis] = jnp.sin(angle / 2)
    return jnp.stack(parts, axis=-1)


def _as_euler(q, axes, intrinsic):
    i, j, k = axes if not intrinsic else axes[::-1]
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    at = lambda n: q[..., n]
    if symmetric:
        a, b, c, d = at(3), at(i), at(j), at(k) * sign
    else:
        a, b, c, d = at(3) - at(j), at(i) + at(k) * sign, at(j) + at(3), at(k) * sign - at(i)
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    eps = 1e-7
    low, high = abs(middle) <= eps, abs(middle - np.pi) <= eps
    degenerate = low | high
    safe = lambda y, x, bad: jnp.arctan2(jnp.where(bad, 0, y), jnp.where(bad, 1, x))
    # where a pair vanishes, its angle is not read
    plus, minus = safe(b, a, high & (abs(a) + abs(b) < eps)), safe(d, c, low & (abs(c) + abs(d) < eps))
    first, third = plus - minus, plus + minus
    # one angle too many: the one applied last in the fixed frame is 0
    first_alone = jnp.where(low, 2 * plus, -2 * minus)
    first = jnp.where(degenerate, first_alone if not intrinsic else 0, first)
    third = jnp.where(degenerate, 0 if not intrinsic else jnp.where(low, 2 * plus, 2 * minus), third)
    if not symmetric:
        third, middle = third * sign, middle - np.pi / 2
    angles = [first, middle, third]
    wrapped = [(a + np.pi) % (2 * np.pi) - np.pi for a in (angles if not intrinsic else angles[::-1])]
    wrapped[1] = middle
    return jnp.stack(wrapped, axis=-1)


class Rotation(typing.NamedTuple):
    """A rotation, or several: `quat` contains unit quaternions, float[4] or float[n, 4].

    Made by the `from_` methods.

    >>> from ferrax.scipy.spatial.transform import Rotation
    >>> Rotation.from_quat(jnp.array([0.0, 0.0, 2.0, 0.0])).as_matrix()
    Array([[-1.,  0.,  0.],
           [ 0., -1.,  0.],
           [ 0.,  0.,  1.]], dtype=float32)
    """

    quat: _core.Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Self:
        """The concatenation of a sequence of rotations."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Array, degrees: bool = False) -> Self:
        """Successive rotations about coordinate axes.

        seq: up to three of "xyz", about the fixed axes, or of "XYZ", about those that turn along.
        angles: float[.., len(seq)], or a number for one axis.
        Raises ValueError for another seq, and another number of angles.
        """
        axes, intrinsic = _sequence(seq)
        angles = _inexact(angles)
        if len(axes) == 1 and (angles.ndim == 0 or angles.shape[-1] != 1):
            if angles.ndim:
                raise ValueError(f"inconsistent size for core dimension 'm': 1 vs {angles.shape[-1]}: one angle for each axis of {seq!r}")
            angles = angles[None]
        if angles.ndim == 0 or angles.shape[-1] != len(axes):
            raise ValueError(f"inconsistent size for core dimension 'm': {len(axes)} vs {angles.shape[-1:]}: one angle for each axis of {seq!r}")
        angles = jnp.deg2rad(angles) if degrees else angles
        q = _about(axes[0], angles[..., 0])
        for k, axis in enumerate(axes[1:], 1):
            turn = _about(axis, angles[..., k])
            q = _times(q, turn) if intrinsic else _times(turn, q)
        return cls(q)

    @classmethod
    def from_matrix(cls, matrix: Array) -> Self:
        """Rotations of orthogonal matrices, float[.., 3, 3], of determinant 1.

        Raises ValueError for another shape.
        """
        m = _inexact(matrix)
        if m.ndim < 2 or tuple(m.shape[-2:]) != (3, 3):
            raise ValueError(f"Expected `matrix` to have shape (3, 3) or (N, 3, 3), got {tuple(m.shape)}")
        return cls(_from_matrix(m))

    @classmethod
    def from_mrp(cls, mrp: Array) -> Self:
        """Rotations of modified Rodrigues parameters, float[.., 3]: the axis times tan(angle /
        4).
        """
        v = _inexact(mrp)
        square = (v * v).sum(-1, keepdims=True)
        return cls(jnp.concatenate([2 * v, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: Array) -> Self:
        """Rotations of quaternions (x, y, z, w), float[.., 4], of any length but 0.

        Raises ValueError for another shape.
        """
        q = _inexact(quat)
        if q.ndim == 0 or q.shape[-1] != 4:
            raise ValueError(f"Expected `quat` to have shape (4,) or (N, 4), got {tuple(q.shape)}")
        return cls(_unit(q))

    @classmethod
    def from_rotvec(cls, rotvec: Array, degrees: bool = False) -> Self:
        """Rotations of vectors along their axes, float[.., 3], as long as the angle."""
        v = _inexact(rotvec)
        return cls(_from_rotvec(jnp.deg2rad(v) if degrees else v))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Self:
        """The identity rotation, or `num` of them."""
        q = jnp.array([0, 0, 0, 1], dtype)
        return cls(q if num is None else jnp.tile(q, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Self:
        """A rotation drawn from all, or `num` of them: normal numbers in four directions have no
        preferred one.
        """
        return cls(_unit(random.normal(random_key, (4,) if num is None else (num, 4))))

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other: Rotation) -> Rotation:
        """First `other`, then this one; single ones meet each of several."""
        if not isinstance(other, Rotation):
            return NotImplemented
        return Rotation(_unit(_times(*jnp.broadcast_arrays(self.quat, other.quat))))

    def apply(self, vectors: Array, inverse: bool = False) -> Array:
        """The vectors, float[.., 3], turned (back, if `inverse`)."""
        v = _inexact(vectors)
        m = self.as_matrix()
        return jnp.einsum("...kj,...k->...j" if inverse else "...jk,...k->...j", m, v)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The three angles of `from_euler`; in gimbal lock one of them is 0.

        Raises ValueError for a seq of fewer axes.
        """
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        axes, intrinsic = _sequence(seq)
        angles = _as_euler(self.quat, axes, intrinsic)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """The orthogonal matrices, float[.., 3, 3]."""
        x, y, z, w = [self.quat[..., k] for k in range(4)]
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return jnp.stack([jnp.stack(r, axis=-1) for r in rows], axis=-2)

    def as_mrp(self) -> Array:
        """The modified Rodrigues parameters, of length up to 1."""
        q = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return q[..., :3] / (1 + q[..., 3:])

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axes, as long as the angle, which is up to pi."""
        v = _as_rotvec(self.quat)
        return jnp.rad2deg(v) if degrees else v

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions; canonical: of q and -q the one whose scalar is not negative."""
        q = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, axis=-1) if scalar_first else q

    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation(self.quat * jnp.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """The angles, from 0 to pi."""
        v = self.quat[..., :3]
        return 2 * jnp.arctan2(jnp.sqrt((v * v).sum(-1)), abs(self.quat[..., 3]))

    def mean(self, weights: Array | None = None) -> Rotation:
        """The rotation nearest to all: the first eigenvector of sum w q q' (F. L. Markley et al.,
        Journal of Guidance, Control and Dynamics 30, 2007).
        """
        q = jnp.atleast_2d(self.quat)
        w = jnp.ones(q.shape[0], q.dtype) if weights is None else jnp.asarray(weights).astype(q.dtype)
        if tuple(w.shape) != (q.shape[0],):
            raise ValueError(f"Expected `weights` to have one number for each of {q.shape[0]} rotations, got shape {tuple(w.shape)}")
        k = lax.dot_general(w[:, None] * q, q, (((0,), (0,)), ((), ())), precision=lax.Precision.HIGHEST)
        _, vectors = jnp.linalg.eigh(k)
        return Rotation.from_quat(vectors[:, -1])

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not several."""
        return self.quat.ndim == 1


class Slerp(typing.NamedTuple):
    """Rotations between rotations: from each to the next about one axis, evenly in time.

    Made by `init`.

    >>> from ferrax.scipy.spatial.transform import Rotation, Slerp
    >>> turns = Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> Slerp.init(jnp.array([0.0, 1.0]), turns)(0.5).as_euler("xyz", degrees=True).round(3)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: _core.Array
    timedelta: _core.Array
    rotations: Rotation
    rotvecs: _core.Array

    @classmethod
    def init(cls, times: Array, rotations: Rotation) -> Self:
        """times: float[n], ascending; rotations: n of them, two or more.

        Raises ValueError for other numbers of them.
        """
        if rotations.single or len(rotations) < 2:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = _inexact(times)
        if times.ndim != 1:
            raise ValueError(f"Expected times to be specified in a 1 dimensional array, got {times.ndim} dimensions.")
        if times.shape[0] != len(rotations):
            raise ValueError(
                f"Expected number of rotations to be equal to number of timestamps given, got {len(rotations)} rotations and {times.shape[0]} timestamps."
            )
        first = rotations[:-1]
        return cls(times, jnp.diff(times), first, (first.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times: Array) -> Rotation:
        """The rotations at these times, a number or float[m]; outside, those of the nearest
        interval are extrapolated.
        """
        t = _inexact(times)
        if t.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        one = jnp.atleast_1d(t)
        k = jnp.clip(jnp.searchsorted(self.times, one, side="right") - 1, 0, self.rotvecs.shape[0] - 1)
        part = (one - self.times[k]) / self.timedelta[k]
        y = self.rotations[k] * Rotation.from_rotvec(self.rotvecs[k] * part[:, None])
        return y[0] if t.ndim == 0 else y
