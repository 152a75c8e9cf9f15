"""Products of matrices with a scale for each block.

Invariant: a scale belongs to a block of the contracted axis: shapes of operand and scale differ
only in the size of that axis, by an integer factor.

    scaled_matmul(a, b, a_scales, b_scales) == einsum("bmk,bnk->bmn", a * repeat(a_scales), b * repeat(b_scales))
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .. import lax, numpy as jnp
from .._base.flags import inert, refused
from ..numpy._support.arguments import as_array, check_arraylike

if TYPE_CHECKING:
    from .._core import Array
    from ..typing import ArrayLike, DTypeLike

_NAME = "scaled_matmul"


def scaled_matmul(lhs: Array, rhs: Array, lhs_scales: Array, rhs_scales: Array, preferred_element_type: DTypeLike = np.float32) -> Array:
    """The product of lhs and rhs over their last axes, each block of elements times its scale;
    computed in float32.

    Args:
        lhs: (B, M, K).
        rhs: (B, N, K).
        lhs_scales: (B, M, K / block).
        rhs_scales: (B, N, K / block).
        preferred_element_type: the result's dtype.

    Returns:
        an array (B, M, N).

    Raises:
        ValueError: the shapes do not fit.
        TypeError: an argument is not an array.

    >>> nn.scaled_matmul(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 4)), jnp.full((1, 1, 2), 0.5), jnp.ones((1, 1, 2)))
    Array([[[2.]]], dtype=float32)
    """
    check_arraylike(_NAME, lhs, rhs, lhs_scales, rhs_scales)
    a, b, s, t = [as_array(_NAME, x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    if any(x.ndim != 3 for x in (a, b, s, t)):
        raise ValueError(f"{_NAME} requires all inputs to be 3-dimensional arrays")
    shapes = [tuple(x.shape) for x in (a, b, s, t)]
    if (a.shape[0], a.shape[2]) != (b.shape[0], b.shape[2]):
        raise ValueError(f"{_NAME} requires inputs a and b to have matching batch (B) and contract (K) dimensions, but got shapes {shapes[0]} and {shapes[1]}")
    if (s.shape[0], s.shape[2]) != (t.shape[0], t.shape[2]):
        raise ValueError(f"{_NAME} requires scales to have matching batch (B) and contract (K) dimensions, but got shapes {shapes[2]} and {shapes[3]}")
    if s.shape[:2] != a.shape[:2] or t.shape[:2] != b.shape[:2]:
        shown = ", ".join(f"{name}: {shape}" for name, shape in zip(("a", "b", "a_scales", "b_scales"), shapes, strict=True))
        raise ValueError(f"{_NAME} requires scales to match non-contract dimensions of inputs, but got shapes {shown}")
    blocks = s.shape[2]
    if not blocks or a.shape[2] % blocks:
        raise ValueError(f"{_NAME} requires the contract dimension to be a multiple of that of the scales, but got {a.shape[2]} and {blocks}")
    wide = [jnp.repeat(x.astype(np.float32), a.shape[2] // blocks, axis=-1) for x in (s, t)]
    product = lax.dot_general(a.astype(np.float32) * wide[0], b.astype(np.float32) * wide[1], (((2,), (2,)), ((0,), (0,))))
    return product.astype(preferred_element_type)


@dataclasses.dataclass
class BlockScaleConfig:
    """How an operand is quantised: the dtypes of its elements and scales, and the length of a
    block.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: Literal["nvfp4", "mxfp8"], global_scale: Array | None = None) -> BlockScaleConfig:
    """The configuration of a kind of quantisation.

    Args:
        mode: "nvfp4" or "mxfp8".
        global_scale: of nvfp4, a scale of all blocks, float32; 1 by default.

    Returns:
        `BlockScaleConfig`.

    Raises:
        ValueError: the mode is unknown.

    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    import ml_dtypes

    if mode == "nvfp4":
        one = jnp.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, one, False)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, None, False)
    raise ValueError(f"Unsupported mode: {mode}")


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: list[Any] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """`lax.dot_general`, with operands that are quantised by blocks where there are configurations.

    Args:
        lhs, rhs, dimension_numbers: as in `lax.dot_general`.
        preferred_element_type: the result's dtype.
        configs: None; quantised products are those of GPUs with such units, and JAX's CPU refuses
          them too.
        implementation: ignored.

    Returns:
        the product.

    Raises:
        NotImplementedError: there are configurations.

    >>> nn.scaled_dot_general(jnp.ones((1, 2, 32)), jnp.ones((1, 2, 32)), (((2,), (2,)), ((0,), (0,)))).shape
    (1, 2, 2)
    """
    if implementation is not None:
        inert("scaled_dot_general", "implementation", "there is one implementation")
    if configs is not None:
        refused("scaled_dot_general", "configs", configs, "no device here multiplies quantised blocks; scaled_matmul takes operands and scales")
    return lax.dot_general(
        as_array("scaled_dot_general", lhs), as_array("scaled_dot_general", rhs), dimension_numbers, preferred_element_type=preferred_element_type
    )
