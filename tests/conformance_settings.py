"""The conformance suite under the settings of `config`: what JAX lets pass under one, passes here.

    python tests/conformance.py numpy --mode strict,rank     # what is refused or differs under these; needs JAX
    python tests/conformance.py --mode all --write           # every table; writes golden/settings.txt

A setting binds the code that the user wrote: a function's own body is never refused. So a case fails that JAX answers under a setting and that raises here, or
has another value than it has here without the setting, if JAX's stays as it is. A refusal that is JAX's too is kept in golden/settings.txt, by which
test_conformance_settings.py tells new ones without JAX beside.
"""

import contextlib
import pathlib

import conformance
import numpy as np
from conformance import Wrong

GOLDEN = pathlib.Path(__file__).parent / "golden" / "settings.txt"
# Mode: flag, value, default.
MODES = {
    "rank": ("jax_numpy_rank_promotion", "raise", "allow"),
    "warn": ("jax_numpy_rank_promotion", "warn", "allow"),
    "strict": ("jax_numpy_dtype_promotion", "strict", "standard"),
    "nans": ("jax_debug_nans", True, False),
    "infs": ("jax_debug_infs", True, False),
    "nojit": ("jax_disable_jit", True, False),
    "leaks": ("jax_check_tracer_leaks", True, False),
    "checks": ("jax_enable_checks", True, False),
    "x64": ("jax_explicit_x64_dtypes", "error", "warn"),
}
# Differences that are meant, by mode and function: why.
REASONS = {
    ("nans", "jax.scipy.special.comb"): "NaN among the arguments, where JAX gives zero",
}
STEP = 17  # the golden file has every 17th case


def endless(case):
    """Whether a case is a loop that never ends, which runs beside Python unless loops are Python's."""
    return "while_loop" in case.function and any(getattr(x, "size", 1) == 0 for x in case.operands)


@contextlib.contextmanager
def setting(lib, mode):
    flag, value, default = MODES[mode]
    lib.config.update(flag, value)
    try:
        yield
    finally:
        lib.config.update(flag, default)


def outcome(lib, case, mode):
    """What a library makes of a case under a setting; operands are made without it. With `warn`, a warning raises."""
    return conformance.outcome(lib, case, lambda: setting(lib, mode), "Following NumPy automatic rank" if mode == "warn" else None)


def bad(out, mode):
    """Whether a result has what the mode looks for."""
    look = {"nans": np.isnan, "infs": np.isinf}.get(mode)
    arrays = [x for _, _, x in out if x is not None and np.asarray(x).dtype.kind in "fcV"]
    return bool(look) and any(look(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)).any() for x in arrays)


def refused(lib, case, mode):
    """What a case raises, or how its value is changed, under a setting; None where the setting changes nothing."""
    free = conformance.outcome(lib, case)
    if isinstance(free, Wrong) or endless(case):
        return None
    got = outcome(lib, case, mode)
    return f"raises {got}" if isinstance(got, Wrong) else conformance.difference(case, got, free)


def judged(lib, oracle, case, mode):
    """(what is wrong with a case under a setting, or None; whether both libraries refuse it)."""
    what = refused(lib, case, mode)
    if not what:
        return None, False
    theirs = outcome(oracle, case, mode)
    if isinstance(theirs, Wrong):
        return None, what.startswith("raises")
    if not what.startswith("raises"):
        what = conformance.difference(case, outcome(lib, case, mode), theirs)
        if what and conformance.difference(case, conformance.outcome(lib, case), conformance.outcome(oracle, case)):
            what = None  # it differs without the setting, which has its reason or not
        return what, False
    # A result that is bad though JAX's check has passed it by is bad.
    if bad(theirs, mode) or bad(conformance.outcome(lib, case), mode) or (mode, case.function) in REASONS:
        return None, True
    return what, False


def cases(tables, only=None, step=1, part=(0, 1)):
    """(function, number, case) of the tables."""
    for table in tables:
        for line, name in conformance.functions(table)[part[0] :: part[1]]:
            function = f"{line.module}.{name}"
            if not line.reason and (not only or function in only or name in only):
                for number, case in list(enumerate(conformance.cases_of(line, name)))[::step]:
                    yield function, number, case


def golden():
    """{mode: {function number}} of the refusals that are JAX's too."""
    out = {mode: set() for mode in MODES}
    for line in GOLDEN.read_text().splitlines():
        if line and not line.startswith("#"):
            mode, _, rest = line.partition(" ")
            out[mode].add(rest)
    return out


def main(lib, oracle, options):
    modes = list(MODES) if options.mode == "all" else options.mode.split(",")
    part = tuple(int(n) for n in options.part.split("/"))
    kept, wrong = {mode: [] for mode in modes}, 0
    step = STEP if options.write else options.step
    for function, number, case in cases(options.tables, set(filter(None, options.only.split(","))), step, part):
        for mode in modes:
            what, both = judged(lib, oracle, case, mode)
            if both:
                kept[mode].append(f"{function} {number}")
            if what:
                wrong += 1
                print(f"{mode}: {case}\n    {what}", flush=True)
    print(f"{wrong} wrong; refused by both: { ({mode: len(v) for mode, v in kept.items()}) }", flush=True)
    if options.write:
        head = "# Of every 17th conformance case those that JAX refuses under a setting, and so do we. Written by `python tests/conformance.py --mode all --write`.\n"
        GOLDEN.write_text(head + "".join(f"{mode} {what}\n" for mode in modes for what in kept[mode]))
