"""Layers as pairs of functions, put together by `serial` and `parallel`."""

from collections.abc import Callable, Sequence
from ferrax._core import Array
from ferrax.typing import ArrayLike
from typing import Any

from ferrax.nn.initializers import zeros as zeros
from ferrax.nn import standardize as standardize
from ferrax.nn import softplus as softplus
from ferrax.nn import softmax as softmax
from ferrax.nn import sigmoid as sigmoid
from ferrax.nn import selu as selu
from ferrax.nn import relu as relu
from ferrax.nn.initializers import normal as randn
from ferrax.nn.initializers import ones as ones
from ferrax.nn.initializers import normal as normal
from ferrax.nn import log_softmax as log_softmax
from ferrax.nn import leaky_relu as leaky_relu
from ferrax.nn.initializers import glorot_normal as glorot_normal
from ferrax.nn.initializers import glorot_normal as glorot
from ferrax.nn import gelu as gelu
from ferrax.nn import elu as elu

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]

def AvgPool(window_shape: Any, strides: Any = None, padding: str = "VALID", spec: Any = None) -> Any: ...
def BatchNorm(axis: Any = ..., epsilon: float = 1e-05, center: bool = True, scale: bool = True, beta_init: Any = ..., gamma_init: Any = ...) -> Any: ...

Conv: Callable[..., Any]
Conv1DTranspose: Callable[..., Any]
ConvTranspose: Callable[..., Any]

def Dense(out_dim: Any, W_init: Any = ..., b_init: Any = ...) -> Any: ...
def Dropout(rate: Any, mode: str = "train") -> Any: ...

Elu: tuple[Any, ...]
Exp: tuple[Any, ...]

def FanInConcat(axis: int = -1) -> Any: ...

FanInSum: tuple[Any, ...]

def FanOut(num: Any) -> Any: ...

Flatten: tuple[Any, ...]
Gelu: tuple[Any, ...]

def GeneralConv(
    dimension_numbers: Any, out_chan: Any, filter_shape: Any, strides: Any = None, padding: str = "VALID", W_init: Any = None, b_init: Any = ...
) -> Any: ...
def GeneralConvTranspose(
    dimension_numbers: Any, out_chan: Any, filter_shape: Any, strides: Any = None, padding: str = "VALID", W_init: Any = None, b_init: Any = ...
) -> Any: ...

Identity: tuple[Any, ...]
LeakyRelu: tuple[Any, ...]
LogSoftmax: tuple[Any, ...]

def MaxPool(window_shape: Any, strides: Any = None, padding: str = "VALID", spec: Any = None) -> Any: ...

Relu: tuple[Any, ...]
Selu: tuple[Any, ...]
Sigmoid: tuple[Any, ...]
Softmax: tuple[Any, ...]
Softplus: tuple[Any, ...]

def SumPool(window_shape: Any, strides: Any = None, padding: str = "VALID", spec: Any = None) -> Any: ...

Tanh: tuple[Any, ...]

def elementwise(fun: Any, **fun_kwargs: Any) -> Any: ...
def logsoftmax(x: ArrayLike, axis: int | Sequence[int] | None = -1, where: ArrayLike | None = None) -> Array: ...
def parallel(*layers: Any) -> Any: ...
def serial(*layers: Any) -> Any: ...
def shape_dependent(make_layer: Any) -> Any: ...
