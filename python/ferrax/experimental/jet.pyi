"""Taylor-mode differentiation: how a function carries power series."""

from typing import Any

__all__ = [
    "ZeroSeries",
    "ZeroTerm",
    "def_comp",
    "def_deriv",
    "deflinear",
    "defzero",
    "deriv_prop",
    "fact",
    "jet",
    "jet_rules",
    "linear_prop",
    "zero_prop",
    "zero_series",
    "zero_term",
]

class ZeroSeries: ...
class ZeroTerm: ...

def def_comp(prim: Any, comp: Any, **kwargs: Any) -> Any: ...
def def_deriv(prim: Any, deriv: Any) -> Any: ...
def deflinear(prim: Any) -> Any: ...
def defzero(prim: Any) -> Any: ...
def deriv_prop(prim: Any, deriv: Any, primals_in: Any, series_in: Any) -> Any: ...
def fact(n: Any) -> Any: ...
def jet(fun: Any, primals: Any, series: Any, factorial_scaled: bool = True, **_: Any) -> Any: ...

jet_rules: dict[Any, Any]

def linear_prop(prim: Any, primals_in: Any, series_in: Any, **params: Any) -> Any: ...
def zero_prop(prim: Any, primals_in: Any, series_in: Any, **params: Any) -> Any: ...

zero_series: ZeroSeries
zero_term: ZeroTerm
