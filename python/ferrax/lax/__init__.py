"""`ferrax.lax`: the operations of programs, one primitive each, and control flow.

Invariant: this file is only the list of public names.

    >>> from ferrax import lax
    >>> lax.add(1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
"""

import importlib as _importlib
import typing as _typing

from .._core import Primitive as _Primitive, primitive as _primitive, primitives as _primitives
from .._base.late import late as _late
from ._parameters import (
    AccuracyMode as AccuracyMode,
    ConvDimensionNumbers as ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
    DotAlgorithm as DotAlgorithm,
    DotAlgorithmPreset as DotAlgorithmPreset,
    DotDimensionNumbers as DotDimensionNumbers,
    FftType as FftType,
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    Precision as Precision,
    PrecisionLike as PrecisionLike,
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
    RandomAlgorithm as RandomAlgorithm,
    RoundingMethod as RoundingMethod,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    Tolerance as Tolerance,
)
from ._arithmetic import (
    abs as abs,
    add as add,
    ceil as ceil,
    clamp as clamp,
    complex as complex,
    conj as conj,
    div as div,
    floor as floor,
    imag as imag,
    is_finite as is_finite,
    max as max,
    min as min,
    mul as mul,
    mulhi as mulhi,
    neg as neg,
    nextafter as nextafter,
    real as real,
    reciprocal as reciprocal,
    reduce_precision as reduce_precision,
    rem as rem,
    round as round,
    sign as sign,
    square as square,
    sub as sub,
)
from ._comparisons import (
    bitwise_and as bitwise_and,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    clz as clz,
    eq as eq,
    ge as ge,
    gt as gt,
    le as le,
    lt as lt,
    ne as ne,
    population_count as population_count,
    select as select,
    select_n as select_n,
    shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_logical as shift_right_logical,
)
from ._powers import (
    cbrt as cbrt,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    integer_pow as integer_pow,
    log as log,
    log1p as log1p,
    logistic as logistic,
    pow as pow,
    rsqrt as rsqrt,
    sqrt as sqrt,
)
from ._special_functions import (
    bessel_i0e as bessel_i0e,
    bessel_i1e as bessel_i1e,
    betainc as betainc,
    digamma as digamma,
    erf as erf,
    erf_inv as erf_inv,
    erfc as erfc,
    igamma as igamma,
    igamma_grad_a as igamma_grad_a,
    igammac as igammac,
    lgamma as lgamma,
    polygamma as polygamma,
    random_gamma_grad as random_gamma_grad,
    zeta as zeta,
)
from ._trigonometric import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    sin as sin,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
)
from ._creation import (
    bitcast_convert_type as bitcast_convert_type,
    broadcasted_iota as broadcasted_iota,
    convert_element_type as convert_element_type,
    dtype as dtype,
    empty as empty,
    full as full,
    full_like as full_like,
    iota as iota,
    shape_as_value as shape_as_value,
    zeros_like_array as zeros_like_array,
)
from ._shaping import (
    broadcast as broadcast,
    broadcast_in_dim as broadcast_in_dim,
    broadcast_like as broadcast_like,
    broadcast_shapes as broadcast_shapes,
    broadcast_to_rank as broadcast_to_rank,
    collapse as collapse,
    concatenate as concatenate,
    expand_dims as expand_dims,
    pad as pad,
    reshape as reshape,
    rev as rev,
    split as split,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    transpose as transpose,
    unstack as unstack,
)
from ._gather_scatter import (
    gather as gather,
    index_take as index_take,
    scatter as scatter,
    scatter_add as scatter_add,
    scatter_apply as scatter_apply,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_sub as scatter_sub,
)
from ._slicing import (
    dynamic_index_in_dim as dynamic_index_in_dim,
    dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    index_in_dim as index_in_dim,
    slice as slice,
    slice_in_dim as slice_in_dim,
)
from ._cumulative import (
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
    cumprod as cumprod,
    cumsum as cumsum,
)
from ._reductions import (
    argmax as argmax,
    argmin as argmin,
    reduce as reduce,
    reduce_and as reduce_and,
    reduce_max as reduce_max,
    reduce_min as reduce_min,
    reduce_or as reduce_or,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    reduce_xor as reduce_xor,
)
from ._windows import (
    padtype_to_pads as padtype_to_pads,
    reduce_window as reduce_window,
    reduce_window_shape_tuple as reduce_window_shape_tuple,
)
from ._fourier import fft as fft
from ._sorting import (
    approx_max_k as approx_max_k,
    approx_min_k as approx_min_k,
    sort as sort,
    sort_key_val as sort_key_val,
    top_k as top_k,
)
from ._linear_algebra import (
    batch_matmul as batch_matmul,
    dot as dot,
    dot_general as dot_general,
    ragged_dot as ragged_dot,
    ragged_dot_general as ragged_dot_general,
    scaled_dot as scaled_dot,
)
from ._convolution import (
    conv as conv,
    conv_dimension_numbers as conv_dimension_numbers,
    conv_general_dilated as conv_general_dilated,
    conv_general_dilated_local as conv_general_dilated_local,
    conv_general_dilated_patches as conv_general_dilated_patches,
    conv_general_permutations as conv_general_permutations,
    conv_general_shape_tuple as conv_general_shape_tuple,
    conv_shape_tuple as conv_shape_tuple,
    conv_transpose as conv_transpose,
    conv_transpose_shape_tuple as conv_transpose_shape_tuple,
    conv_with_general_padding as conv_with_general_padding,
)
from ._control_flow import (
    cond as cond,
    switch as switch,
    while_loop as while_loop,
)
from ._loops import (
    associative_scan as associative_scan,
    fori_loop as fori_loop,
    map as map,
    scan as scan,
)
from ._axis_names import axis_index as axis_index, axis_size as axis_size
from ._collectives import (
    all_gather as all_gather,
    all_to_all as all_to_all,
    pbroadcast as pbroadcast,
    pcast as pcast,
    pmax as pmax,
    pmean as pmean,
    pmin as pmin,
    ppermute as ppermute,
    pshuffle as pshuffle,
    psum as psum,
    ragged_all_to_all as ragged_all_to_all,
    psum_scatter as psum_scatter,
    pswapaxes as pswapaxes,
)
from ._differentiation import (
    composite as composite,
    custom_linear_solve as custom_linear_solve,
    custom_root as custom_root,
    optimization_barrier as optimization_barrier,
    platform_dependent as platform_dependent,
    stop_gradient as stop_gradient,
    with_sharding_constraint as with_sharding_constraint,
)
from ._tokens import (
    after_all as after_all,
    create_token as create_token,
    precv as precv,
    psend as psend,
)
from ._random import (
    rng_bit_generator as rng_bit_generator,
    rng_uniform as rng_uniform,
)

if _typing.TYPE_CHECKING:
    from ._composed_primitives import dce_sink as dce_sink
    from ._composed_primitives import stage as stage
    after_all_p: _typing.Any
    create_token_p: _typing.Any
    select_and_scatter_p: _typing.Any
    from . import linalg as linalg


# Names of primitives that no program holds.
_UNBOUND = {"after_all_p", "create_token_p", "select_and_scatter_p"}
_COMPOSED = {"dce_sink", "dce_sink_p", "eq_to_p", "ragged_all_to_all_p", "sharding_constraint_p", "stage", "stage_p"}


if not _typing.TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name == "linalg":
            return _importlib.import_module(f"{__name__}.linalg")
        if name in _COMPOSED:
            return getattr(_importlib.import_module(f"{__name__}._composed_primitives"), name)
        if name in _UNBOUND:
            globals()[name] = _Primitive(name.removesuffix("_p"))
            return globals()[name]
        # Primitives as objects: `add_p`, `scan_p`, `scatter_add_p` ("scatter-add").
        if name.endswith("_p"):
            word = name.removesuffix("_p")
            for candidate in (word, word.replace("_", "-", 1), f"custom_{word}"):  # linear_solve_p is custom_linear_solve
                if (value := _primitive(candidate)) is not None:
                    return value
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    names = {name.replace("-", "_").removeprefix("custom_") + "_p" for name, *_ in _primitives()}
    return sorted({*[n for n in globals() if not n.startswith("_")], *names, *_COMPOSED, *_UNBOUND, "linalg"})


_late(__name__)
