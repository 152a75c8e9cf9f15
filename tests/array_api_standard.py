"""What the Python array API standard 2024.12 says, as tables: signatures and special cases.

A signature is Python's own text. A special case is a call whose operands are words for sets of numbers (`WORDS`), and its result: an expression of
numpy over the operands `x1` and `x2`, in which a zero has the sign that is written.

    atan2(>0, +0) = pi / 2
"""

import math
import re

MAIN = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
astype(x, dtype, /, *, copy=True, device=None)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
can_cast(from_, to, /)
finfo(type, /)
iinfo(type, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
clip(x, /, min=None, max=None)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
concat(arrays, /, *, axis=0)
expand_dims(x, /, *, axis=0)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
count_nonzero(x, /, *, axis=None, keepdims=False)
nonzero(x, /)
searchsorted(x1, x2, /, *, side='left', sorter=None)
where(condition, x1, x2, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
argsort(x, /, *, axis=-1, descending=False, stable=True)
sort(x, /, *, axis=-1, descending=False, stable=True)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
min(x, /, *, axis=None, keepdims=False)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
__array_namespace_info__()
"""
LINALG = """
cholesky(x, /, *, upper=False)
cross(x1, x2, /, *, axis=-1)
det(x, /)
diagonal(x, /, *, offset=0)
eigh(x, /)
eigvalsh(x, /)
inv(x, /)
matmul(x1, x2, /)
matrix_norm(x, /, *, keepdims=False, ord='fro')
matrix_power(x, n, /)
matrix_rank(x, /, *, rtol=None)
matrix_transpose(x, /)
outer(x1, x2, /)
pinv(x, /, *, rtol=None)
qr(x, /, *, mode='reduced')
slogdet(x, /)
solve(x1, x2, /)
svd(x, /, *, full_matrices=True)
svdvals(x, /)
tensordot(x1, x2, /, *, axes=2)
trace(x, /, *, offset=0, dtype=None)
vecdot(x1, x2, /, *, axis=-1)
vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
"""
FFT = """
fft(x, /, *, n=None, axis=-1, norm='backward')
ifft(x, /, *, n=None, axis=-1, norm='backward')
fftn(x, /, *, s=None, axes=None, norm='backward')
ifftn(x, /, *, s=None, axes=None, norm='backward')
rfft(x, /, *, n=None, axis=-1, norm='backward')
irfft(x, /, *, n=None, axis=-1, norm='backward')
rfftn(x, /, *, s=None, axes=None, norm='backward')
irfftn(x, /, *, s=None, axes=None, norm='backward')
hfft(x, /, *, n=None, axis=-1, norm='backward')
ihfft(x, /, *, n=None, axis=-1, norm='backward')
fftfreq(n, /, *, d=1.0, dtype=None, device=None)
rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fftshift(x, /, *, axes=None)
ifftshift(x, /, *, axes=None)
"""
# Elementwise functions by the dtypes they take; those of two operands broadcast and promote.
ONE = {
    "numeric": "abs negative positive square",
    "real": "ceil floor trunc sign round",
    "floating": "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh sqrt tan tanh",
    "real floating": "signbit",
    "complex": "conj imag real",
    "integral or bool": "bitwise_invert",
    "bool": "logical_not",
    "tests": "isfinite isinf isnan",
}
TWO = {
    "numeric": "add multiply subtract",
    "all": "equal not_equal",
    "real": "floor_divide remainder maximum minimum greater greater_equal less less_equal",
    "powers": "pow",
    "floating": "divide",
    "real floating": "atan2 copysign hypot logaddexp nextafter",
    "integral or bool": "bitwise_and bitwise_or bitwise_xor",
    "integral": "bitwise_left_shift bitwise_right_shift",
    "bool": "logical_and logical_or logical_xor",
}
CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128")
OPERATORS = (
    "abs add and bool complex dlpack dlpack_device eq float floordiv ge getitem gt index int invert le lshift lt matmul mod mul ne neg or pos pow"
    " rshift setitem sub truediv xor radd rand rfloordiv rlshift rmatmul rmod rmul ror rpow rrshift rsub rtruediv rxor array_namespace"
)
ATTRIBUTES = ("dtype", "device", "mT", "ndim", "shape", "size", "T", "to_device")

_SMALL, _LARGE = 1e-30, 1e30
_POS = [_SMALL, 0.25, 1.0, 1.5, 3.0, _LARGE]
_NEG = [-x for x in _POS]
WORDS = {
    "nan": [math.nan],
    "+inf": [math.inf],
    "-inf": [-math.inf],
    "±inf": [math.inf, -math.inf],
    "+0": [0.0],
    "-0": [-0.0],
    "±0": [0.0, -0.0],
    "1": [1.0],
    "-1": [-1.0],
    "±1": [1.0, -1.0],
    "pos": _POS,
    "neg": _NEG,
    ">0": [*_POS, math.inf],
    "<0": [*_NEG, -math.inf],
    ">1": [1.5, 3.0, _LARGE, math.inf],
    "<1": [0.25, 0.0, -0.0, *_NEG, -math.inf],
    "<-1": [-1.5, -3.0, -_LARGE, -math.inf],
    "|x|>1": [1.5, -1.5, 3.0, -_LARGE],
    "|x|<1": [0.25, -0.25, _SMALL, 0.0, -0.0],
    "finite": [*_POS, *_NEG, 0.0, -0.0],
    "nonzero finite": [*_POS, *_NEG],
    "nonzero": [*_POS, *_NEG, math.inf, -math.inf],
    "whole": [1.0, -1.0, 3.0, -4.0, 2.0**30, -_LARGE],
    "not whole": [0.25, -0.25, 1.5, -3.5],
    "odd>0": [1.0, 3.0, 11.0],
    "odd<0": [-1.0, -3.0, -11.0],
    "else>0": [0.25, 2.0, 2.5, 4.0, _LARGE],
    "else<0": [-0.25, -2.0, -2.5, -4.0, -_LARGE],
    "half": [0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5],
    "not nan": [*_POS, *_NEG, 0.0, -0.0, math.inf, -math.inf],
    "not inf": [*_POS, *_NEG, 0.0, -0.0, math.nan],
    "not 1": [*_POS[:2], *_POS[3:], *_NEG, 0.0, -0.0, math.inf, -math.inf, math.nan],
    "any": [*_POS, *_NEG, 0.0, -0.0, math.inf, -math.inf, math.nan],
}

REAL = """
abs(nan) = nan
abs(-0) = +0
abs(-inf) = inf
acos(nan) = nan
acos(>1) = nan
acos(<-1) = nan
acos(1) = +0
acosh(nan) = nan
acosh(<1) = nan
acosh(1) = +0
acosh(+inf) = inf
add(nan, any) = nan
add(any, nan) = nan
add(+inf, -inf) = nan
add(-inf, +inf) = nan
add(+inf, +inf) = inf
add(-inf, -inf) = -inf
add(+inf, finite) = inf
add(-inf, finite) = -inf
add(finite, +inf) = inf
add(finite, -inf) = -inf
add(-0, -0) = -0
add(-0, +0) = +0
add(+0, -0) = +0
add(+0, +0) = +0
add(±0, nonzero finite) = x2
add(nonzero finite, ±0) = x1
asin(nan) = nan
asin(>1) = nan
asin(<-1) = nan
asin(±0) = x1
asinh(nan) = nan
asinh(±0) = x1
asinh(±inf) = x1
atan(nan) = nan
atan(±0) = x1
atan(+inf) = pi / 2
atan(-inf) = -pi / 2
atan2(nan, any) = nan
atan2(any, nan) = nan
atan2(>0, ±0) = pi / 2
atan2(+0, >0) = +0
atan2(+0, +0) = +0
atan2(+0, -0) = pi
atan2(+0, <0) = pi
atan2(-0, >0) = -0
atan2(-0, +0) = -0
atan2(-0, -0) = -pi
atan2(-0, <0) = -pi
atan2(<0, ±0) = -pi / 2
atan2(pos, +inf) = +0
atan2(pos, -inf) = pi
atan2(neg, +inf) = -0
atan2(neg, -inf) = -pi
atan2(+inf, finite) = pi / 2
atan2(-inf, finite) = -pi / 2
atan2(+inf, +inf) = pi / 4
atan2(+inf, -inf) = 3 * pi / 4
atan2(-inf, +inf) = -pi / 4
atan2(-inf, -inf) = -3 * pi / 4
atanh(nan) = nan
atanh(<-1) = nan
atanh(>1) = nan
atanh(-1) = -inf
atanh(1) = inf
atanh(±0) = x1
ceil(whole) = x1
ceil(±inf) = x1
ceil(±0) = x1
ceil(nan) = nan
copysign(any, <0) = copysign(x1, -1)
copysign(any, -0) = copysign(x1, -1)
copysign(any, +0) = copysign(x1, 1)
copysign(any, >0) = copysign(x1, 1)
cos(nan) = nan
cos(±0) = 1
cos(±inf) = nan
cosh(nan) = nan
cosh(±0) = 1
cosh(±inf) = inf
divide(nan, any) = nan
divide(any, nan) = nan
divide(±inf, ±inf) = nan
divide(±0, ±0) = nan
divide(+0, >0) = +0
divide(-0, >0) = -0
divide(+0, <0) = -0
divide(-0, <0) = +0
divide(>0, +0) = inf
divide(>0, -0) = -inf
divide(<0, +0) = -inf
divide(<0, -0) = inf
divide(+inf, pos) = inf
divide(+inf, neg) = -inf
divide(-inf, pos) = -inf
divide(-inf, neg) = inf
divide(pos, +inf) = +0
divide(pos, -inf) = -0
divide(neg, +inf) = -0
divide(neg, -inf) = +0
equal(nan, any) = False
equal(any, nan) = False
equal(±inf, finite) = False
equal(±0, ±0) = True
equal(+inf, +inf) = True
equal(-inf, -inf) = True
exp(nan) = nan
exp(±0) = 1
exp(+inf) = inf
exp(-inf) = +0
expm1(nan) = nan
expm1(±0) = x1
expm1(+inf) = inf
expm1(-inf) = -1
floor(whole) = x1
floor(±inf) = x1
floor(±0) = x1
floor(nan) = nan
floor_divide(nan, any) = nan
floor_divide(any, nan) = nan
floor_divide(±inf, ±inf) = nan
floor_divide(±0, ±0) = nan
floor_divide(+0, >0) = +0
floor_divide(-0, >0) = -0
floor_divide(+0, <0) = -0
floor_divide(-0, <0) = +0
floor_divide(>0, +0) = inf
floor_divide(>0, -0) = -inf
floor_divide(<0, +0) = -inf
floor_divide(<0, -0) = inf
floor_divide(+inf, pos) = inf
floor_divide(+inf, neg) = -inf
floor_divide(-inf, pos) = -inf
floor_divide(-inf, neg) = inf
floor_divide(pos, +inf) = +0
floor_divide(pos, -inf) = -1
floor_divide(neg, +inf) = -1
floor_divide(neg, -inf) = +0
greater(nan, any) = False
greater(any, nan) = False
greater_equal(nan, any) = False
greater_equal(any, nan) = False
hypot(±inf, any) = inf
hypot(any, ±inf) = inf
hypot(not inf, nan) = nan
hypot(nan, not inf) = nan
hypot(±0, finite) = abs(x2)
hypot(finite, ±0) = abs(x1)
isfinite(±inf) = False
isfinite(nan) = False
isfinite(finite) = True
isinf(±inf) = True
isinf(finite) = False
isinf(nan) = False
isnan(nan) = True
isnan(not nan) = False
less(nan, any) = False
less(any, nan) = False
less_equal(nan, any) = False
less_equal(any, nan) = False
log(nan) = nan
log(<0) = nan
log(±0) = -inf
log(1) = +0
log(+inf) = inf
log1p(nan) = nan
log1p(<-1) = nan
log1p(-1) = -inf
log1p(±0) = x1
log1p(+inf) = inf
log2(nan) = nan
log2(<0) = nan
log2(±0) = -inf
log2(1) = +0
log2(+inf) = inf
log10(nan) = nan
log10(<0) = nan
log10(±0) = -inf
log10(1) = +0
log10(+inf) = inf
logaddexp(nan, any) = nan
logaddexp(any, nan) = nan
logaddexp(+inf, not nan) = inf
logaddexp(not nan, +inf) = inf
maximum(nan, any) = nan
maximum(any, nan) = nan
minimum(nan, any) = nan
minimum(any, nan) = nan
multiply(nan, any) = nan
multiply(any, nan) = nan
multiply(±inf, ±0) = nan
multiply(±0, ±inf) = nan
multiply(±inf, ±inf) = copysign(1, x1) * copysign(1, x2) * inf
multiply(±inf, nonzero finite) = copysign(1, x1) * copysign(1, x2) * inf
multiply(nonzero finite, ±inf) = copysign(1, x1) * copysign(1, x2) * inf
multiply(±0, finite) = copysign(+0, x1) * copysign(1, x2)
nextafter(nan, any) = nan
nextafter(any, nan) = nan
nextafter(-0, +0) = +0
nextafter(+0, -0) = -0
not_equal(nan, any) = True
not_equal(any, nan) = True
pow(not 1, nan) = nan
pow(any, ±0) = 1
pow(nan, nonzero) = nan
pow(|x|>1, +inf) = inf
pow(|x|>1, -inf) = +0
pow(±1, ±inf) = 1
pow(1, not nan) = 1
pow(|x|<1, +inf) = +0
pow(|x|<1, -inf) = inf
pow(+inf, >0) = inf
pow(+inf, <0) = +0
pow(-inf, odd>0) = -inf
pow(-inf, else>0) = inf
pow(-inf, odd<0) = -0
pow(-inf, else<0) = +0
pow(+0, >0) = +0
pow(+0, <0) = inf
pow(-0, odd>0) = -0
pow(-0, else>0) = +0
pow(-0, odd<0) = -inf
pow(-0, else<0) = inf
pow(neg, not whole) = nan
reciprocal(nan) = nan
reciprocal(+inf) = +0
reciprocal(-inf) = -0
reciprocal(+0) = inf
reciprocal(-0) = -inf
remainder(nan, any) = nan
remainder(any, nan) = nan
remainder(±inf, any) = nan
remainder(any, ±0) = nan
remainder(±0, >0) = +0
remainder(±0, <0) = -0
remainder(pos, +inf) = x1
remainder(pos, -inf) = x2
remainder(neg, +inf) = x2
remainder(neg, -inf) = x1
round(whole) = x1
round(±inf) = x1
round(±0) = x1
round(nan) = nan
round(half) = rint(x1)
sign(<0) = -1
sign(±0) = 0
sign(>0) = 1
sign(nan) = nan
signbit(+0) = False
signbit(-0) = True
signbit(>0) = False
signbit(<0) = True
sin(nan) = nan
sin(±0) = x1
sin(±inf) = nan
sinh(nan) = nan
sinh(±0) = x1
sinh(±inf) = x1
sqrt(nan) = nan
sqrt(<0) = nan
sqrt(±0) = x1
sqrt(+inf) = inf
square(nan) = nan
square(±inf) = inf
subtract(nan, any) = nan
subtract(any, nan) = nan
subtract(±inf, finite) = x1
subtract(finite, ±inf) = -x2
subtract(+inf, +inf) = nan
subtract(-0, +0) = -0
subtract(+0, +0) = +0
subtract(-0, -0) = +0
tan(nan) = nan
tan(±0) = x1
tan(±inf) = nan
tanh(nan) = nan
tanh(±0) = x1
tanh(+inf) = 1
tanh(-inf) = -1
trunc(whole) = x1
trunc(±inf) = x1
trunc(±0) = x1
trunc(nan) = nan
"""

# Of a complex number its two parts are written; `?` is a part with a sign, or a value, that the standard leaves open.
COMPLEX = """
abs(±inf, any) = inf
abs(any, ±inf) = inf
acos(±0, +0) = pi / 2, -0
acos(±0, nan) = pi / 2, nan
acos(finite, +inf) = pi / 2, -inf
acos(nonzero finite, nan) = nan, nan
acos(-inf, pos) = pi, -inf
acos(+inf, pos) = +0, -inf
acos(-inf, +inf) = 3 * pi / 4, -inf
acos(+inf, +inf) = pi / 4, -inf
acos(±inf, nan) = nan, ±inf
acos(nan, finite) = nan, nan
acos(nan, +inf) = nan, -inf
acos(nan, nan) = nan, nan
acosh(±0, +0) = +0, pi / 2
acosh(finite, +inf) = inf, pi / 2
acosh(nonzero finite, nan) = nan, nan
acosh(±0, nan) = nan, pi / 2
acosh(-inf, pos) = inf, pi
acosh(+inf, pos) = inf, +0
acosh(-inf, +inf) = inf, 3 * pi / 4
acosh(+inf, +inf) = inf, pi / 4
acosh(±inf, nan) = inf, nan
acosh(nan, finite) = nan, nan
acosh(nan, +inf) = inf, nan
acosh(nan, nan) = nan, nan
asinh(+0, +0) = +0, +0
asinh(pos, +inf) = inf, pi / 2
asinh(finite, nan) = nan, nan
asinh(+inf, pos) = inf, +0
asinh(+inf, +inf) = inf, pi / 4
asinh(+inf, nan) = inf, nan
asinh(nan, +0) = nan, +0
asinh(nan, nonzero finite) = nan, nan
asinh(nan, +inf) = ±inf, nan
asinh(nan, nan) = nan, nan
atanh(+0, +0) = +0, +0
atanh(+0, nan) = +0, nan
atanh(1, +0) = inf, +0
atanh(pos, +inf) = +0, pi / 2
atanh(nonzero finite, nan) = nan, nan
atanh(+inf, pos) = +0, pi / 2
atanh(+inf, +inf) = +0, pi / 2
atanh(+inf, nan) = +0, nan
atanh(nan, finite) = nan, nan
atanh(nan, +inf) = ±0, pi / 2
atanh(nan, nan) = nan, nan
cosh(+0, +0) = 1, ±0
cosh(+0, +inf) = nan, ±0
cosh(+0, nan) = nan, ±0
cosh(nonzero finite, +inf) = nan, nan
cosh(nonzero finite, nan) = nan, nan
cosh(+inf, +0) = inf, +0
cosh(+inf, nonzero finite) = inf * cos(x2), inf * sin(x2)
cosh(+inf, +inf) = ±inf, nan
cosh(+inf, nan) = inf, nan
cosh(nan, +0) = nan, ±0
cosh(nan, nonzero) = nan, nan
cosh(nan, nan) = nan, nan
exp(±0, +0) = 1, +0
exp(finite, +inf) = nan, nan
exp(finite, nan) = nan, nan
exp(+inf, +0) = inf, +0
exp(-inf, finite) = +0 * cos(x2), +0 * sin(x2)
exp(+inf, nonzero finite) = inf * cos(x2), inf * sin(x2)
exp(-inf, +inf) = ±0, ±0
exp(+inf, +inf) = ±inf, nan
exp(-inf, nan) = ±0, ±0
exp(+inf, nan) = ±inf, nan
exp(nan, +0) = nan, +0
exp(nan, nonzero) = nan, nan
exp(nan, nan) = nan, nan
expm1(±0, +0) = ±0, +0
expm1(finite, +inf) = nan, nan
expm1(finite, nan) = nan, nan
expm1(+inf, +0) = inf, +0
expm1(-inf, finite) = -1, +0 * sin(x2)
expm1(+inf, nonzero finite) = inf * cos(x2), inf * sin(x2)
expm1(-inf, +inf) = -1, ±0
expm1(+inf, +inf) = ±inf, nan
expm1(-inf, nan) = -1, ±0
expm1(+inf, nan) = ±inf, nan
expm1(nan, +0) = nan, +0
expm1(nan, nonzero) = nan, nan
expm1(nan, nan) = nan, nan
isfinite(±inf, any) = False
isfinite(any, nan) = False
isfinite(finite, finite) = True
isinf(±inf, any) = True
isinf(any, ±inf) = True
isinf(finite, finite) = False
isnan(nan, any) = True
isnan(any, nan) = True
log(-0, +0) = -inf, pi
log(+0, +0) = -inf, +0
log(finite, +inf) = inf, pi / 2
log(finite, nan) = nan, nan
log(-inf, pos) = inf, pi
log(+inf, pos) = inf, +0
log(-inf, +inf) = inf, 3 * pi / 4
log(+inf, +inf) = inf, pi / 4
log(±inf, nan) = inf, nan
log(nan, finite) = nan, nan
log(nan, +inf) = inf, nan
log(nan, nan) = nan, nan
log1p(-1, +0) = -inf, +0
log1p(finite, +inf) = inf, pi / 2
log1p(finite, nan) = nan, nan
log1p(-inf, pos) = inf, pi
log1p(+inf, pos) = inf, +0
log1p(-inf, +inf) = inf, 3 * pi / 4
log1p(+inf, +inf) = inf, pi / 4
log1p(±inf, nan) = inf, nan
log1p(nan, finite) = nan, nan
log1p(nan, +inf) = inf, nan
log1p(nan, nan) = nan, nan
sign(±0, ±0) = ±0, ±0
sign(nan, any) = nan, nan
sign(any, nan) = nan, nan
sinh(+0, +0) = +0, +0
sinh(+0, +inf) = ±0, nan
sinh(+0, nan) = ±0, nan
sinh(pos, +inf) = nan, nan
sinh(pos, nan) = nan, nan
sinh(+inf, +0) = inf, +0
sinh(+inf, pos) = inf * cos(x2), inf * sin(x2)
sinh(+inf, +inf) = ±inf, nan
sinh(+inf, nan) = ±inf, nan
sinh(nan, +0) = nan, +0
sinh(nan, nonzero) = nan, nan
sinh(nan, nan) = nan, nan
sqrt(±0, +0) = +0, +0
sqrt(any, +inf) = inf, inf
sqrt(finite, nan) = nan, nan
sqrt(-inf, pos) = +0, inf
sqrt(+inf, pos) = inf, +0
sqrt(-inf, nan) = nan, ±inf
sqrt(+inf, nan) = inf, nan
sqrt(nan, finite) = nan, nan
sqrt(nan, nan) = nan, nan
tanh(+0, +0) = +0, +0
tanh(nonzero finite, +inf) = nan, nan
tanh(+0, +inf) = +0, nan
tanh(nonzero finite, nan) = nan, nan
tanh(+0, nan) = +0, nan
tanh(+inf, pos) = 1, ±0
tanh(+inf, +inf) = 1, ±0
tanh(+inf, nan) = 1, ±0
tanh(nan, +0) = nan, +0
tanh(nan, nonzero) = nan, nan
tanh(nan, nan) = nan, nan
"""


def signatures(text):
    """(name, what stands in the parentheses) of each line."""
    return [(line.partition("(")[0], line.partition("(")[2][:-1]) for line in text.split("\n")[1:-1]]


def elementwise(table):
    """{name: what it takes}"""
    return {name: kind for kind, names in table.items() for name in names.split()}


def cases(text):
    """(the case, its function, words for the operands, the results' expressions)"""
    for line in text.split("\n")[1:-1]:
        call, result = line.split(" = ")
        name, operands = call[:-1].split("(")
        yield line, name, operands.split(", "), re.split(r", (?![^(]*\))", result)


# Calls of a two-dimensional array x, by the dtypes it may have; `kinds` are those of isdtype.
FORMS = {
    ("bool", "integral", "real floating", "complex floating"): """
xp.full_like(x, 1)
xp.ones_like(x)
xp.zeros_like(x)
xp.zeros_like(x, dtype=xp.int8)
xp.tril(x)
xp.tril(x, k=-1)
xp.triu(x, k=1)
xp.meshgrid(x[0, ...], x[:, 0])
xp.meshgrid(x[0, ...], x[:, 0], indexing='ij')
xp.broadcast_to(x, (2, *x.shape))
xp.broadcast_arrays(x, x[:1, :])
xp.concat([x, x], axis=1)
xp.concat([x, x], axis=None)
xp.expand_dims(x, axis=0)
xp.expand_dims(x, axis=-1)
xp.flip(x)
xp.flip(x, axis=0)
xp.flip(x, axis=(0, 1))
xp.moveaxis(xp.stack([x, x]), 0, -1)
xp.moveaxis(xp.stack([x, x]), (0, 1), (2, 0))
xp.permute_dims(x, (1, 0))
xp.repeat(x, 2)
xp.repeat(x, 2, axis=1)
xp.repeat(x, xp.asarray([2] * x.shape[0]), axis=0)
xp.reshape(x, (-1,))
xp.reshape(x, (1, x.size), copy=True)
xp.roll(x, 1)
xp.roll(x, (1, -1), axis=(0, 1))
xp.squeeze(x[None, ...], 0)
xp.squeeze(x[None, :, :, None], (0, 3))
xp.stack([x, x], axis=-1)
xp.tile(x, (2,))
xp.tile(x, (2, 1, 2))
xp.unstack(x)
xp.unstack(x, axis=1)
xp.matrix_transpose(x)
xp.take(x, xp.asarray([0, 0, -1]), axis=0)
xp.take(x[0, ...], xp.asarray([0, 0]))
xp.take_along_axis(x, xp.asarray([[0] * x.shape[1]]), axis=0)
xp.take_along_axis(x, xp.asarray([[0]] * x.shape[0]))
xp.where(x == x[:1, :1], x, x[:1, :])
xp.nonzero(x)
xp.count_nonzero(x)
xp.count_nonzero(x, axis=0, keepdims=True)
xp.all(x)
xp.all(x, axis=1, keepdims=True)
xp.any(x, axis=(0, 1))
xp.unique_values(x)
xp.unique_counts(x)
xp.unique_inverse(x)
xp.unique_all(x)
x.T
x.mT
x[0, 0]
x[::-1, :]
x[..., 0]
x[x == x]
xp.astype(x, xp.complex64)
xp.asarray(x, copy=True)
""",
    ("integral", "real floating", "complex floating"): """
xp.sum(x)
xp.sum(x, axis=0)
xp.sum(x, axis=(0, 1), keepdims=True)
xp.sum(x[:0, :], axis=0)
xp.sum(x, dtype=xp.complex128)
xp.prod(x, axis=1)
xp.prod(x[:0, :])
xp.cumulative_sum(x, axis=0)
xp.cumulative_sum(x, axis=1, include_initial=True)
xp.cumulative_sum(x[0, ...], include_initial=True)
xp.diff(x)
xp.diff(x, axis=0, n=2)
xp.diff(x, prepend=x[:, :1], append=x)
xp.matmul(x, x.T)
xp.matmul(xp.stack([x, x]), x.T)
xp.tensordot(x, x)
xp.tensordot(x, x, axes=1) if x.shape[0] == x.shape[1] else x
xp.tensordot(x, x, axes=((1,), (1,)))
xp.vecdot(x, x)
xp.vecdot(x, x, axis=-2)
xp.linalg.outer(x[0, ...], x[:, 0])
xp.linalg.trace(x)
xp.linalg.trace(x, offset=1)
xp.linalg.diagonal(x)
xp.linalg.diagonal(x, offset=-1)
xp.linalg.cross(x[:1, :1] * xp.asarray([[1, 2, 3]], dtype=x.dtype), xp.asarray([[3, 1, 2]], dtype=x.dtype))
""",
    ("integral", "real floating"): """
xp.argmax(x)
xp.argmax(x, axis=0)
xp.argmin(x, axis=1, keepdims=True)
xp.argsort(x)
xp.argsort(x, axis=0, descending=True)
xp.sort(x)
xp.sort(x, axis=0, descending=True)
xp.max(x)
xp.max(x, axis=1, keepdims=True)
xp.min(x, axis=(0, 1))
xp.clip(x, 0, 2)
xp.clip(x, max=x[:1, :])
xp.astype(xp.searchsorted(xp.sort(x[0, ...]), x), xp.int64)
xp.astype(xp.searchsorted(xp.sort(x[0, ...]), x, side='right'), xp.int64)
xp.astype(xp.searchsorted(x[0, ...], x, sorter=xp.argsort(x[0, ...])), xp.int64)
""",
    ("real floating", "complex floating"): """
xp.cumulative_prod(x, axis=0)
xp.cumulative_prod(x, axis=-1, include_initial=True)
xp.mean(x) if not xp.isdtype(x.dtype, 'complex floating') else x
xp.linalg.vector_norm(x)
xp.linalg.vector_norm(x, axis=0, keepdims=True, ord=1)
xp.linalg.vector_norm(x, axis=(0, 1), ord=xp.inf)
xp.linalg.vector_norm(x, ord=0)
xp.linalg.matrix_norm(x)
xp.linalg.matrix_norm(x, ord=1, keepdims=True)
xp.linalg.matrix_norm(x, ord='nuc')
xp.linalg.matrix_rank(x)
xp.linalg.matrix_rank(x, rtol=0.5)
xp.linalg.svdvals(x)
xp.linalg.pinv(x, rtol=1e-3)
xp.linalg.det(xp.matmul(x, xp.conj(x).T) + 9 * xp.eye(x.shape[0], dtype=x.dtype))
xp.linalg.matrix_power(xp.matmul(x, x.T), 3)
xp.linalg.inv(xp.matmul(x, xp.conj(x).T) + 9 * xp.eye(x.shape[0], dtype=x.dtype))
xp.linalg.solve(xp.matmul(x, xp.conj(x).T) + 9 * xp.eye(x.shape[0], dtype=x.dtype), x)
xp.linalg.cholesky(xp.matmul(x, xp.conj(x).T) + 9 * xp.eye(x.shape[0], dtype=x.dtype))
xp.linalg.cholesky(xp.matmul(x, xp.conj(x).T) + 9 * xp.eye(x.shape[0], dtype=x.dtype), upper=True)
xp.linalg.eigvalsh(xp.matmul(x, xp.conj(x).T))
xp.linalg.slogdet(xp.matmul(x, xp.conj(x).T) + 9 * xp.eye(x.shape[0], dtype=x.dtype))
""",
    ("real floating",): """
xp.mean(x, axis=0, keepdims=True)
xp.std(x)
xp.std(x, axis=0, correction=1.0) if x.shape[0] > 1 else x
xp.var(x, axis=(0, 1), keepdims=True)
xp.var(x, correction=0.5)
xp.fft.rfft(x)
xp.fft.rfft(x, n=5, axis=0, norm='ortho')
xp.fft.rfftn(x)
xp.fft.ihfft(x)
xp.fft.fftshift(x)
xp.fft.ifftshift(x, axes=1)
""",
    ("complex floating",): """
xp.conj(x)
xp.real(x)
xp.imag(x)
xp.fft.fft(x)
xp.fft.fft(x, n=3, axis=0, norm='forward')
xp.fft.ifft(x, norm='ortho')
xp.fft.fftn(x)
xp.fft.fftn(x, s=(2, 5), axes=(0, 1))
xp.fft.ifftn(x)
xp.fft.irfft(x, n=4)
xp.fft.irfftn(x, s=(2, 4), axes=(0, 1))
xp.fft.hfft(x, n=6)
""",
}
# Calls without an array.
MAKERS = """
xp.arange(5)
xp.arange(1, 6, 2)
xp.arange(5, 0, -2)
xp.arange(0.0, 1.0, 0.25)
xp.arange(3, dtype=xp.float32)
xp.arange(0)
xp.asarray(True)
xp.asarray(3)
xp.asarray(1.5)
xp.asarray(1j)
xp.asarray([[1, 2], [3, 4]])
xp.asarray([1, 2.5])
xp.asarray([1, 2], dtype=xp.uint8)
xp.eye(3)
xp.eye(2, 3, k=1)
xp.eye(3, k=-1, dtype=xp.int16)
xp.full((2,), 3)
xp.full((2, 1), True)
xp.full(2, 1.5)
xp.full((), 1j)
xp.full((2,), 3, dtype=xp.float32)
xp.linspace(0, 1, 5)
xp.linspace(0, 1, 4, endpoint=False)
xp.linspace(0, 1j, 3)
xp.linspace(0.0, 1.0, num=1, dtype=xp.float32)
xp.ones((2, 3))
xp.ones(4, dtype=xp.bool)
xp.zeros(())
xp.zeros((0, 2), dtype=xp.complex64)
xp.fft.fftfreq(5)
xp.fft.fftfreq(4, d=0.5, dtype=xp.float32)
xp.fft.rfftfreq(5)
xp.fft.rfftfreq(4, d=2.0)
"""
