"""The conformance suite under the settings of `config`: what JAX lets pass under one, passes here.

    python tests/conformance.py numpy --mode strict,rank     # what is refused or differs under these; needs JAX
    python tests/conformance.py --mode all --write           # every table; writes golden/settings.txt

A setting binds the code that the user wrote: a function's own body is never refused. So a case fails that JAX answers under a setting and that raises here, or
has another value than it has here without the setting, if JAX's stays as it is. So does one that JAX refuses for its operands and that is answered here: the
promotion of what the user gives. A refusal that is JAX's too is kept in golden/settings.txt, by which api/test_conformance.py tells new ones without JAX beside.

Settings that choose what is computed (the kind of random bits, the precision of products) are modes as well: both libraries agree under them.
"""

import contextlib
import pathlib
import re

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
# The same for settings that choose what is computed: both libraries have the same results under them.
CHOICES = {
    "rbg": ("jax_default_prng_impl", "rbg", "threefry2x32"),
    "unsafe": ("jax_default_prng_impl", "unsafe_rbg", "threefry2x32"),
    "layout": ("jax_threefry_partitionable", False, True),
    "offset": ("jax_random_seed_offset", 7, 0),
    "legacy": ("jax_legacy_prng_key", "error", "allow"),
    "gumbel": ("jax_high_dynamic_range_gumbel", True, False),
    "precision": ("jax_default_matmul_precision", "highest", None),
    "bf16": ("jax_default_matmul_precision", "BF16_BF16_F32", None),
    "softmax": ("jax_softmax_custom_jvp", True, False),
    "reuse": ("jax_debug_key_reuse", True, False),
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
    flag, value, default = {**MODES, **CHOICES}[mode]
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


def too_free(case, mode, theirs):
    """Whether JAX refuses what the user gives, and not what its own function makes of it: the dtypes that it names are those of operands."""
    if mode == "x64":
        return "Explicitly requested dtype" in str(theirs)
    named = re.search(r"Input dtypes \((.*?)\) have no", str(theirs))
    if mode != "strict" or not named:
        return False
    kinds = {str(x.dtype) if hasattr(x, "dtype") else type(x).__name__ for x in case.operands}
    return {re.sub(r"<class '(\w+)'>", r"\1", w.strip(" \"'")) for w in re.findall(r"<class '\w+'>|\w+", named[1])} <= kinds


def judged(lib, oracle, case, mode, free=None):
    """(what is wrong with a case under a setting, or None; whether both libraries refuse it).

    free: the results without the setting, of `lib` and of `oracle`, where they are known.
    """
    ours, theirs = free or (conformance.outcome(lib, case), conformance.outcome(oracle, case))
    if isinstance(ours, Wrong) or endless(case):
        return None, False
    differs = conformance.difference(case, ours, theirs)
    got = outcome(lib, case, mode)
    refused = isinstance(got, Wrong)
    if mode in CHOICES:
        return (None if differs else conformance.difference(case, got, outcome(oracle, case, mode))), False
    changed = None if refused else conformance.difference(case, got, ours)
    beside = outcome(oracle, case, mode) if refused or changed or mode in ("strict", "x64") else theirs
    if isinstance(beside, Wrong):
        free = not refused and not isinstance(theirs, Wrong) and too_free(case, mode, beside)
        return (f"answers, where JAX raises {beside}" if free else None), refused
    if not refused:
        return (changed and not differs and conformance.difference(case, got, beside)) or None, False
    # A result that is bad though JAX's check has passed it by is bad.
    if bad(beside, mode) or bad(ours, mode) or (mode, case.function) in REASONS:
        return None, True
    return f"raises {got}", False


def cases(tables, only=None, step=1, part=(0, 1), first=0):
    """(function, number, case) of the tables: of each function every `step`-th case, from the `first` on."""
    for table in tables:
        for line, name in conformance.functions(table)[part[0] :: part[1]]:
            function = f"{line.module}.{name}"
            if not line.reason and (not only or function in only or name in only):
                for number, case in list(enumerate(conformance.cases_of(line, name)))[first::step]:
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
    modes = {"all": list(MODES), "choices": list(CHOICES)}.get(options.mode) or options.mode.split(",")
    part = tuple(int(n) for n in options.part.split("/"))
    kept, wrong = {mode: [] for mode in modes}, 0
    step = STEP if options.write else options.step
    for function, number, case in cases(options.tables, set(filter(None, options.only.split(","))), step, part, options.first):
        free = conformance.outcome(lib, case), conformance.outcome(oracle, case)
        for mode in modes:
            what, both = judged(lib, oracle, case, mode, free)
            if both:
                kept[mode].append(f"{function} {number}")
            if what:
                wrong += 1
                print(f"{mode}: {case}\n    {what}", flush=True)
    print(f"{wrong} wrong; refused by both: { ({mode: len(v) for mode, v in kept.items()}) }", flush=True)
    if options.write:
        head = "# Of every 17th conformance case those that JAX refuses under a setting, and so do we. Written by `python tests/conformance.py --mode all --write`.\n"
        GOLDEN.write_text(head + "".join(f"{mode} {what}\n" for mode in modes for what in kept[mode]))
