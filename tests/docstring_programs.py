"""The examples in the docstrings of installed packages, as programs: taken out when the test runs, and run on one library in a process of its own.

    python docstring_programs.py take jax numpy scipy > programs.json      # where JAX is installed
    python docstring_programs.py run ferrax < programs.json > prints.json  # `import jax` is served by ferrax.compat
    python docstring_programs.py run jax < programs.json > prints.json

A program is the examples of one docstring in their order; what a library makes of it is a list with what each of them prints, or `Class: message`
of what it raises. Nothing of the texts is kept.
"""

import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
import signal
import sys
import warnings

SECONDS = 30  # what a single example may take
FLAGS = ("jax_enable_x64", "jax_debug_nans", "jax_debug_infs", "jax_numpy_dtype_promotion", "jax_threefry_partitionable", "jax_default_prng_impl")
# Programs that start servers, write profiles, wait for other processes, or print how long something took.
NOT_RUN = re.compile(
    r"jax\.profiler\.|start_server|distributed\.initialize|live_arrays|cloud_tpu|breakpoint\(|pallas|mosaic|jax\.collect_profile|savefig|plt\.|timeit"
)


def modules(root):
    """The public modules below a package."""
    package = importlib.import_module(root)
    yield root, package
    for found in pkgutil.walk_packages(package.__path__, f"{root}."):
        if any(part.startswith("_") for part in found.name.split(".")) or "pallas" in found.name or "mosaic" in found.name or ".tools" in found.name:
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield found.name, importlib.import_module(found.name)
        except Exception:
            continue  # wants a package or a device that is not here


def texts(root):
    """(dotted name, docstring) of all that is public below a package: modules, functions, classes and their methods."""
    for path, module in modules(root):
        yield path, module.__doc__
        for name in sorted(vars(module)):
            value = getattr(module, name)
            if name.startswith("_") or inspect.ismodule(value) or not (callable(value) or isinstance(value, property)):
                continue
            yield f"{path}.{name}", value.__doc__
            if inspect.isclass(value):
                for below in sorted(vars(value)):
                    if not below.startswith("_"):
                        yield f"{path}.{name}.{below}", getattr(inspect.getattr_static(value, below), "__doc__", None)


def same_functions(root, mirror):
    """Docstrings of the functions of NumPy or SciPy that JAX has under `mirror`."""
    for path, module in modules(mirror):
        try:
            theirs = importlib.import_module(path.replace(mirror, root, 1))
        except ImportError:
            continue
        for name in sorted(vars(module)):
            value, original = getattr(module, name), getattr(theirs, name, None)
            if not name.startswith("_") and callable(value) and not inspect.isclass(original) and callable(original):
                yield f"{path}.{name}", original.__doc__


def take(roots):
    """[[name, [[source, says that it raises], ...]], ...], each docstring once, under the shortest of its names."""
    parser, found = doctest.DocTestParser(), {}
    for root in roots:
        every = texts("jax") if root == "jax" else same_functions(root, {"numpy": "jax.numpy", "scipy": "jax.scipy"}[root])
        for name, text in every:
            if not isinstance(text, str) or ">>> " not in text:
                continue
            try:
                examples = parser.get_examples(text)
            except ValueError:
                continue
            if root != "jax":
                name = f"{root}: {name}"
            key = "\n".join(e.source for e in examples)
            if key not in found or (len(name), name) < (len(found[key][0]), found[key][0]):
                found[key] = [name, [[e.source, e.exc_msg is not None] for e in examples]]
    return sorted(p for p in found.values() if not any(NOT_RUN.search(source) for source, _ in p[1]))


def names(root, jax):
    """What an example may name without importing it."""
    jnp = importlib.import_module("jax.numpy")
    out = {"jax": jax, "jnp": jnp, "lax": jax.lax, "np": importlib.import_module("numpy"), "random": importlib.import_module("jax.random")}
    out.update({"partial": __import__("functools").partial, "Array": jax.Array, "jit": jax.jit, "grad": jax.grad, "vmap": jax.vmap, "nn": jax.nn})
    if root != "jax":
        scipy = importlib.import_module("jax.scipy")
        for path in ("linalg", "special", "stats", "signal", "fft", "optimize", "ndimage", "integrate", "interpolate", "cluster.vq", "spatial.transform"):
            with contextlib.suppress(ImportError):
                importlib.import_module(f"jax.scipy.{path}")
        out.update({"np": jnp, "scipy": scipy, "linalg": importlib.import_module("jax.numpy.linalg")})
    return out


def on_jax(source):
    """An example from NumPy or SciPy, for the functions below `jax` that mirror them."""
    source = re.sub(r"^(\s*)import numpy as np\b", r"\1import jax.numpy as np", source, flags=re.M)
    source = re.sub(r"^(\s*)import scipy\.(\w+) as (\w+)", r"\1import jax.scipy.\2 as \3", source, flags=re.M)
    source = re.sub(r"^(\s*)import scipy\b.*$", r"\1from jax import scipy", source, flags=re.M)
    return re.sub(r"^(\s*)from (numpy|scipy)\b", r"\1from jax.\2", source, flags=re.M)


class Late(Exception):
    """An example took too long."""


def late(*_):
    raise Late(f"more than {SECONDS} s")


def outcome(source, env):
    """What one example prints, and the exception that ends it."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(source, "<example>", "single"), env)
        return out.getvalue(), None
    except SystemExit as e:
        return out.getvalue(), f"SystemExit: {e}"
    except BaseException as e:
        return out.getvalue(), f"{type(e).__name__}: {e}"


def run(library, programs):
    """{name: [[printed, raised or None], ...]}"""
    if library != "jax":
        importlib.import_module(f"{library}.compat").install()
    jax = importlib.import_module("jax")
    numpy = importlib.import_module("numpy")
    flags = {name: getattr(jax.config, name) for name in FLAGS}
    printing, results = numpy.get_printoptions(), {}
    signal.signal(signal.SIGALRM, late)
    warnings.simplefilter("ignore")
    for name, examples in programs:
        env = {**names(name.partition(": ")[0] if ": " in name else "jax", jax), "__name__": "__main__"}
        rows = results[name] = []
        for source, _ in examples:
            signal.alarm(SECONDS)
            try:
                rows.append(outcome(on_jax(source) if ": " in name else source, env))
            except Late as e:
                rows.append(("", f"Late: {e}"))
            finally:
                signal.alarm(0)
            if rows[-1][1] and rows[-1][1].startswith("Late"):
                break
        for flag, value in flags.items():
            if getattr(jax.config, flag) != value:
                jax.config.update(flag, value)
        numpy.set_printoptions(**printing)
    return results


NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)j?(?!\w)")


def words(text):
    """What is printed, with numbers apart; places in memory and the library's own name are not compared."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text).replace("ferrax.", "jax.")
    text = re.sub(r"(?<!e)([-+])(?=(?:[\d.]+(?:e[-+]?\d+)?|inf|nan)j)", r" \1", text)  # 1.-2.j are two
    return re.sub(r"(?<=[\[(]) | (?=[\]),])", "", " ".join(text.split()))


def same_number(x, y, largest):
    if x == y:
        return True
    if not re.search(r"[.naife]", x + y):
        return False
    u, v = (complex(n.replace("infj", "inf").replace("nanj", "nan")) for n in (x, y))
    return (u != u and v != v) or abs(u - v) <= 2e-5 * abs(v) + 2e-6 * largest


def same_print(got, want):
    """Equal but for the rounding of numbers."""
    got, want = words(got), words(want)
    ours, theirs = NUMBER.findall(got), NUMBER.findall(want)
    if re.sub(r" ?, ?", ",", NUMBER.sub("#", got)) != re.sub(r" ?, ?", ",", NUMBER.sub("#", want)):
        return False
    largest = max((abs(v) for v in (complex(n) for n in theirs if "." in n) if abs(v) < 1e300), default=0)
    return all(same_number(x, y, largest) for x, y in zip(ours, theirs, strict=True))


def first_line(text):
    return text.partition("\n")[0]


def difference(got, want):
    """What differs between what one example does here and on JAX, or None."""
    (printed, raised), (wanted, refused) = got, want
    if bool(raised) != bool(refused):
        return f"raises {first_line(raised)}" if raised else "answers"
    if raised:
        return None if words(first_line(raised)) == words(first_line(refused)) else f"raises {first_line(raised)!r}, not {first_line(refused)!r}"
    return None if same_print(printed, wanted) else f"prints {printed[:300]!r}, not {wanted[:300]!r}"


def differences(programs, ours, theirs):
    """(examples compared, {docstring: [what differs]}); one that JAX does not run, and does not say so, is not counted."""
    count, out = 0, {}
    for name, examples in programs:
        for k, (source, says) in enumerate(examples):
            want = theirs[name][k] if k < len(theirs[name]) else ("", "Late")
            if want[1] and (not says or want[1].startswith("Late")):
                continue
            count += 1
            what = difference(ours[name][k] if k < len(ours[name]) else ("", "Late"), want)
            if what:
                out.setdefault(name, []).append(f"{name}: {first_line(source)} {what}")
    return count, out


def main():
    # What examples and libraries write to the process's own output must not stand in the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    what, rest = sys.argv[1], sys.argv[2:]
    json.dump(take(rest) if what == "take" else run(rest[0], json.load(sys.stdin)), answer)
    answer.flush()
    os._exit(0)  # threads and servers of examples are not waited for


if __name__ == "__main__":
    main()
