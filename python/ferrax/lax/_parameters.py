"""The enumerations and records that lax functions take as parameters.

Invariant: plain values, comparable and hashable, printed as JAX prints them.

    >>> GatherScatterMode.from_any("clip")
    <GatherScatterMode.CLIP: 1>
"""

from __future__ import annotations

# No deferred annotations here: typing compiles those of a NamedTuple one by one, at import.
import enum
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from .. import _core


class RoundingMethod(enum.IntEnum):
    """How `round` treats values half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """The required accuracy of a transcendental function."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """The required accuracy of a transcendental function, as bounds: absolute, relative, in units
    in the last place.
    """

    atol: Any
    rtol: Any
    ulps: Any

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0.0 or rtol < 0.0 or ulps < 0:
            raise ValueError("Tolerances must be non-negative.")
        if atol == 0.0 and rtol == 0.0 and ulps == 0:
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol, self.rtol, self.ulps = atol, rtol, ulps

    def _key(self):
        return self.atol, self.rtol, self.ulps

    def __eq__(self, other):
        return isinstance(other, Tolerance) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def accuracy_parameters(accuracy) -> dict:
    """The primitive's parameters for `accuracy`: none, since there is one implementation.

    Raises an error for an invalid accuracy.
    """
    if accuracy is not None and not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise NotImplementedError(f"Accuracy {accuracy} not supported")
    return {}


class GatherScatterMode(enum.IntEnum):
    """How `gather` and `scatter` treat indices out of bounds.

    CLIP moves them to the nearest valid window; FILL_OR_DROP reads the fill value and drops
    updates; PROMISE_IN_BOUNDS promises that there are none (if there are, they are clipped when
    read and dropped when written); ONE_HOT reads zeros, as a product with one-hot vectors would,
    and does not write.
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode that a string names.

        Args:
            s: GatherScatterMode, "clip", "fill", "drop", "promise_in_bounds", "one_hot", or None,
              which means "fill".

        Returns:
            GatherScatterMode.

        Raises:
            ValueError: `s` is not one of these.
        """
        if isinstance(s, GatherScatterMode):
            return s
        if s == "clip":
            return GatherScatterMode.CLIP
        if s is None or s == "fill" or s == "drop":
            return GatherScatterMode.FILL_OR_DROP
        if s == "promise_in_bounds":
            return GatherScatterMode.PROMISE_IN_BOUNDS
        if s == "one_hot":
            return GatherScatterMode.ONE_HOT
        raise ValueError(f'Unknown gather mode "{s}"')

    def __str__(self):
        return f"GatherScatterMode.{self.name}"


class GatherDimensionNumbers(NamedTuple):
    """How `gather` maps the axes of operand, indices and output onto one another.

    offset_dims: axes of the output that come from the slice; collapsed_slice_dims: axes of the
    operand of slice size 1 that are dropped; start_index_map: the operand axis each component of an
    index vector starts; operand_batching_dims and
    start_indices_batching_dims: axes of operand and indices that run together.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """How the scatter functions map the axes of operand, indices and updates onto one another.

    update_window_dims: axes of the updates that are window axes; inserted_window_dims: operand axes
    of window size 1 that the updates lack; scatter_dims_to_operand_dims: the operand axis each
    component of an index vector starts; operand_batching_dims
    and scatter_indices_batching_dims: axes of operand and indices that run together.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class ConvDimensionNumbers(NamedTuple):
    """Axis orders of a convolution: each spec lists (batch, feature, spatial...) axes, the kernel's
    (out, in, spatial...).
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


class RaggedDotDimensionNumbers:
    """Axes of `ragged_dot_general`: those of the dot, the ragged axis of lhs, the group axes of
    rhs.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Any
    rhs_group_dimensions: Any

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    def __init__(self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Any, rhs_group_dimensions: Any) -> None:
        self.dot_dimension_numbers = tuple(tuple(tuple(axes) for axes in pair) for pair in dot_dimension_numbers)
        self.lhs_ragged_dimensions = tuple(lhs_ragged_dimensions)
        self.rhs_group_dimensions = tuple(rhs_group_dimensions)

    def _key(self):
        return self.dot_dimension_numbers, self.lhs_ragged_dimensions, self.rhs_group_dimensions

    def __iter__(self) -> Iterator[Any]:
        return iter(self._key())

    def __eq__(self, other):
        return isinstance(other, RaggedDotDimensionNumbers) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return (
            f"RaggedDotDimensionNumbers(dot_dimension_numbers={self.dot_dimension_numbers}, "
            f"lhs_ragged_dimensions={self.lhs_ragged_dimensions}, rhs_group_dimensions={self.rhs_group_dimensions})"
        )


DotDimensionNumbers: TypeAlias = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


class _PrecisionMeta(enum.EnumMeta):
    # Precision("float32") and Precision(None) name members by the words that configurations use.
    def __call__(cls, value, *args, **kwargs):
        if value is None or isinstance(value, str):
            value = _PRECISION_WORDS.get(value, value)
        return super().__call__(value, *args, **kwargs)


class Precision(enum.Enum, metaclass=_PrecisionMeta):
    """The requested precision of matrix products and convolutions.

    Ferrax always computes at HIGHEST: a lower precision changes no bit.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"

    def __str__(self):
        return self.name


_PRECISION_WORDS = {
    "highest": 2, "float32": 2, "high": 1, "bfloat16_3x": 1, "tensorfloat32": 1, "default": 0, "bfloat16": 0, "fastest": 0, None: 0,
}  # fmt: skip


class DotAlgorithm(NamedTuple):
    """An algorithm for dot products: precision of the operands, of the accumulator, and how often
    each operand is split.
    """

    lhs_precision_type: object
    rhs_precision_type: object
    accumulation_type: object
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Names of common dot algorithms."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self):
        return f"{type(self).__name__}.{self.name}"

    def __str__(self):
        return self.name


def canonicalize_precision(precision):
    """The (lhs, rhs) pair of `Precision`s for a product's `precision` argument, a dot algorithm, or
    None. An argument that is None is the configured default.

    Raises ValueError for anything else.
    """
    if precision is None:
        precision = _core.config_get("jax_default_matmul_precision")
    if precision is None or isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, Precision):
        return precision, precision
    if isinstance(precision, str):
        if precision in _PRECISION_WORDS:
            return Precision(precision), Precision(precision)
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
    elif isinstance(precision, (list, tuple)) and len(precision) == 2:
        if all(p is None or isinstance(p, Precision) or (isinstance(p, str) and p in _PRECISION_WORDS) for p in precision):
            return tuple(Precision(p) for p in precision)
    raise ValueError(
        "Precision argument must be one of:\n- None,\n- a string in ['highest', 'float32', 'high', 'bfloat16_3x', 'tensorfloat32', "
        "'default', 'bfloat16', 'fastest', None],\n- a lax.Precision value,\n- a tuple of two lax.Precision values or strings,\n"
        "- a lax.DotAlgorithmPreset or the name of one of these presets, or\n- a lax.DotAlgorithm value;\n"
        f"but got {precision}."
    )


class FftType(enum.IntEnum):
    """Kinds of discrete Fourier transform: complex forward and inverse, real to complex, complex to
    real.
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class RandomAlgorithm(enum.IntEnum):
    """Generators of `rng_bit_generator`."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self):
        return self.name


PrecisionLike: Any = None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
ConvGeneralDilatedDimensionNumbers: Any = tuple[str, str, str] | ConvDimensionNumbers | None
