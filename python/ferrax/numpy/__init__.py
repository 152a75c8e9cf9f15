"""`ferrax.numpy`: numpy's functions on Ferrax arrays.

Invariant: this file is only the list of public names.

    >>> import ferrax.numpy as jnp
    >>> jnp.sin(jnp.arange(3.0))
    Array([0.        , 0.84147096, 0.9092974 ], dtype=float32)
"""
import importlib as _importlib
import typing as _typing

from .._base.late import late as _late
from numpy import (
    character as character,
    complexfloating as complexfloating,
    e as e,
    euler_gamma as euler_gamma,
    flexible as flexible,
    floating as floating,
    generic as generic,
    get_printoptions as get_printoptions,
    inexact as inexact,
    inf as inf,
    integer as integer,
    nan as nan,
    newaxis as newaxis,
    number as number,
    object_ as object_,
    pi as pi,
    printoptions as printoptions,
    set_printoptions as set_printoptions,
    signedinteger as signedinteger,
    unsignedinteger as unsignedinteger,
)
from numpy.exceptions import ComplexWarning as ComplexWarning

from .._core import Array as ndarray
from ._support.scalar_types import (
    bool_ as bool_,
    can_cast as can_cast,
    cdouble as cdouble,
    complex128 as complex128,
    complex64 as complex64,
    complex_ as complex_,
    csingle as csingle,
    double as double,
    finfo as finfo,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    float_ as float_,
    iinfo as iinfo,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int8 as int8,
    int_ as int_,
    isdtype as isdtype,
    issubdtype as issubdtype,
    promote_types as promote_types,
    result_type as result_type,
    single as single,
    uint as uint,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    uint8 as uint8,
)
from ._creation.arrays import (
    array as array,
    asarray as asarray,
    astype as astype,
    copy as copy,
    from_dlpack as from_dlpack,
    frombuffer as frombuffer,
    fromfile as fromfile,
    fromiter as fromiter,
    fromstring as fromstring,
)
from ._creation.filled import (
    empty as empty,
    empty_like as empty_like,
    full as full,
    full_like as full_like,
    ones as ones,
    ones_like as ones_like,
    zeros as zeros,
    zeros_like as zeros_like,
)
from ._creation.ranges import (
    fromfunction as fromfunction,
    arange as arange,
    geomspace as geomspace,
    linspace as linspace,
    logspace as logspace,
)
from ._creation.matrices import (
    diag as diag,
    diagflat as diagflat,
    diagonal as diagonal,
    eye as eye,
    identity as identity,
    tri as tri,
    tril as tril,
    triu as triu,
    vander as vander,
)
from ._manipulation.shaping import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    ndim as ndim,
    permute_dims as permute_dims,
    ravel as ravel,
    reshape as reshape,
    rollaxis as rollaxis,
    shape as shape,
    size as size,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
)
from ._manipulation.joining import (
    array_split as array_split,
    block as block,
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    dsplit as dsplit,
    dstack as dstack,
    hsplit as hsplit,
    hstack as hstack,
    split as split,
    stack as stack,
    unstack as unstack,
    vsplit as vsplit,
    vstack as vstack,
)
from ._manipulation.rearranging import (
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    repeat as repeat,
    roll as roll,
    rot90 as rot90,
    tile as tile,
)
from ._manipulation.inserting import (
    append as append,
    delete as delete,
    insert as insert,
    resize as resize,
    trim_zeros as trim_zeros,
)
from ._manipulation.padding import (
    pad as pad,
)
from ._logic.elementwise import (
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    less as less,
    less_equal as less_equal,
    logical_not as logical_not,
    not_equal as not_equal,
)
from ._math.arithmetic import (
    abs as abs,
    absolute as absolute,
    divide as divide,
    divmod as divmod,
    fabs as fabs,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    gcd as gcd,
    heaviside as heaviside,
    lcm as lcm,
    mod as mod,
    positive as positive,
    remainder as remainder,
    sign as sign,
    true_divide as true_divide,
)
from ._math.rounding import (
    around as around,
    ceil as ceil,
    floor as floor,
    modf as modf,
    rint as rint,
    round as round,
    trunc as trunc,
)
from ._math.exponential import (
    cbrt as cbrt,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    float_power as float_power,
    i0 as i0,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    pow as pow,
    power as power,
    reciprocal as reciprocal,
    sqrt as sqrt,
    square as square,
)
from ._math.trigonometric import (
    acos as acos,
    acosh as acosh,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    hypot as hypot,
    rad2deg as rad2deg,
    radians as radians,
    sin as sin,
    sinc as sinc,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
)
from ._math.complex import (
    angle as angle,
    conj as conj,
    conjugate as conjugate,
    imag as imag,
    iscomplex as iscomplex,
    isreal as isreal,
    real as real,
)
from ._math.floating_point import (
    copysign as copysign,
    frexp as frexp,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    isneginf as isneginf,
    isposinf as isposinf,
    ldexp as ldexp,
    nan_to_num as nan_to_num,
    nextafter as nextafter,
    signbit as signbit,
    spacing as spacing,
)
from ._functional.ufuncs import (
    add as add,
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    frompyfunc as frompyfunc,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    logical_and as logical_and,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    negative as negative,
    subtract as subtract,
    ufunc as ufunc,
)
from ._indexing.selecting import (
    clip as clip,
    where as where,
)
from ._indexing.choosing import (
    choose as choose,
    piecewise as piecewise,
    select as select,
)
from ._reductions.cumulative import (
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
)
from ._logic.whole import (
    allclose as allclose,
    array_equal as array_equal,
    array_equiv as array_equiv,
    isclose as isclose,
    iscomplexobj as iscomplexobj,
    isrealobj as isrealobj,
    isscalar as isscalar,
    iterable as iterable,
)
from ._reductions.averages import average as average, mean as mean, std as std, var as var
from ._reductions.nan import (
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
)
from ._reductions.plain import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    max as max,
    min as min,
    prod as prod,
    ptp as ptp,
    sum as sum,
)
from ._sorting.sorting import (
    argpartition as argpartition,
    argsort as argsort,
    lexsort as lexsort,
    partition as partition,
    sort as sort,
    sort_complex as sort_complex,
)
from ._sorting.searching import (
    argwhere as argwhere,
    compress as compress,
    digitize as digitize,
    extract as extract,
    flatnonzero as flatnonzero,
    nonzero as nonzero,
    searchsorted as searchsorted,
)
from ._sorting.sets import (
    intersect1d as intersect1d,
    isin as isin,
    setdiff1d as setdiff1d,
    setxor1d as setxor1d,
    union1d as union1d,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from ._reductions.histograms import (
    bincount as bincount,
    histogram as histogram,
    histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
)
from ._indexing.makers import (
    diag_indices as diag_indices,
    diag_indices_from as diag_indices_from,
    ix_ as ix_,
    mask_indices as mask_indices,
    ravel_multi_index as ravel_multi_index,
    tril_indices as tril_indices,
    tril_indices_from as tril_indices_from,
    triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
    unravel_index as unravel_index,
)
from ._indexing.taking import (
    fill_diagonal as fill_diagonal,
    place as place,
    put as put,
    put_along_axis as put_along_axis,
    take as take,
    take_along_axis as take_along_axis,
)
from ._products.convolving import (
    convolve as convolve,
    correlate as correlate,
)
from ._products.products import (
    cross as cross,
    dot as dot,
    inner as inner,
    kron as kron,
    matmul as matmul,
    matvec as matvec,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vdot as vdot,
    vecdot as vecdot,
    vecmat as vecmat,
)
from ._products.einsum import (
    einsum as einsum,
    einsum_path as einsum_path,
)
from ._reductions.statistics import (
    corrcoef as corrcoef,
    cov as cov,
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
)
from ._calculus.differences import (
    diff as diff,
    ediff1d as ediff1d,
    gradient as gradient,
    interp as interp,
    trapezoid as trapezoid,
    unwrap as unwrap,
)
from ._calculus.polynomials import (
    poly as poly,
    polyadd as polyadd,
    polyder as polyder,
    polydiv as polydiv,
    polyfit as polyfit,
    polyint as polyint,
    polymul as polymul,
    polysub as polysub,
    polyval as polyval,
    roots as roots,
)
from ._calculus.windows import (
    bartlett as bartlett,
    blackman as blackman,
    hamming as hamming,
    hanning as hanning,
    kaiser as kaiser,
)
from ._creation.grids import (
    c_ as c_,
    index_exp as index_exp,
    indices as indices,
    meshgrid as meshgrid,
    mgrid as mgrid,
    ogrid as ogrid,
    r_ as r_,
    s_ as s_,
)
from ._math.bits import (
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_right_shift as bitwise_right_shift,
    invert as invert,
    left_shift as left_shift,
    packbits as packbits,
    right_shift as right_shift,
    unpackbits as unpackbits,
)
from ._functional.vectorizing import (
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    vectorize as vectorize,
)
from ._creation.files import (
    array_repr as array_repr,
    array_str as array_str,
    load as load,
    save as save,
    savez as savez,
)
from . import linalg as linalg
from ._support.scalar_types import EXTENDED as _EXTENDED, bool_ as bool, extended as _extended, numpys_dtype as _dtype

if _typing.TYPE_CHECKING:
    from numpy import dtype as dtype

    from ._support.namespace_info import ArrayNamespaceInfo as __array_namespace_info__
    from ._support.scalar_types import _ScalarMeta
    from . import fft as fft

    bfloat16: _ScalarMeta
    float4_e2m1fn: _ScalarMeta
    float6_e2m3fn: _ScalarMeta
    float6_e3m2fn: _ScalarMeta
    float8_e3m4: _ScalarMeta
    float8_e4m3: _ScalarMeta
    float8_e4m3b11fnuz: _ScalarMeta
    float8_e4m3fn: _ScalarMeta
    float8_e4m3fnuz: _ScalarMeta
    float8_e5m2: _ScalarMeta
    float8_e5m2fnuz: _ScalarMeta
    float8_e8m0fnu: _ScalarMeta
    int1: _ScalarMeta
    int2: _ScalarMeta
    int4: _ScalarMeta
    uint1: _ScalarMeta
    uint2: _ScalarMeta
    uint4: _ScalarMeta

__array_api_version__ = "2024.12"


if not _typing.TYPE_CHECKING:  # a checker would take every name for one of the module's

    def __getattr__(name):
        if name in _EXTENDED:
            value = _extended(name)
        elif name == "dtype":
            value = _dtype()
        elif name == "fft":
            value = _importlib.import_module(f"{__name__}.fft")
        elif name == "__array_namespace_info__":
            value = _importlib.import_module(f"{__name__}._support.namespace_info").ArrayNamespaceInfo
        else:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        globals()[name] = value
        return value


def __dir__():
    return sorted({*[n for n in globals() if not n.startswith("_")], *_EXTENDED, "dtype", "fft"})


# `from .. import *` also reads names that are made at their first use, except dtypes that the installed ml_dtypes may lack.
if not _typing.TYPE_CHECKING:  # a checker takes what is listed above
    __all__ = [n for n in __dir__() if n not in _EXTENDED]

from ._support import array_methods as _array_methods

_array_methods.install()


_late(__name__)
