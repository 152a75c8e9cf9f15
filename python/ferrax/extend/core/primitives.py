"""The primitives of the language as objects, by JAX's names: `add_p`, `scan_p`, `jit_p`.

    if eqn.primitive is jit_p: ...

Invariant: each is the object that programs hold. `call_p` and `closed_call_p` occur in no program,
because calls are equations of `jit_p`; rules that are registered for them are not used.
"""

from ... import lax
from ..._base.late import late as _late
from ..._core import Primitive, primitive

__all__ = [
    "add_jaxvals_p",
    "call_p",
    "closed_call_p",
    "empty2_p",
    "get_p",
    "jit_p",
    "name_p",
    "random_bits_p",
    "random_gamma_p",
    "remat_p",
    "swap_p",
]

jit_p, remat_p, random_bits_p = primitive("jit"), primitive("remat2"), primitive("random_bits")
call_p, closed_call_p = Primitive("call"), Primitive("closed_call")
add_jaxvals_p, name_p = primitive("add_any"), primitive("name") or Primitive("name")
# No program holds these: references are inputs and results of programs, gammas are drawn by a loop.
empty2_p, get_p, swap_p, random_gamma_p = map(Primitive, ("empty2", "get", "swap", "random_gamma"))
call_p.multiple_results = closed_call_p.multiple_results = True


def __getattr__(name):
    if name.endswith("_p"):
        return getattr(lax, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*__all__, *(name for name in dir(lax) if name.endswith("_p"))})


_late(__name__)
