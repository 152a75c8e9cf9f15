"""`import jax` served by Ferrax, in this process: for libraries and programs written for JAX.

    import ferrax.compat
    ferrax.compat.install()
    import jax, optax                       # jax.numpy is ferrax.numpy

`python -m ferrax program.py` does the same for a whole program, and `python -m ferrax adopt` for an
environment (docs/libraries.md).

Invariant: an installed JAX is never touched, and never half used: `jax.x.y` is the module
`ferrax.x.y` itself or, for internals that libraries touch, a module of the names listed or mirrored
in `_standins`; any other import fails with an error that contains the importing module and the
name.
"""

import dis
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import pathlib
import sys
import types

from .. import _core
from .._base.late import dictionary
from .._sharding.spec import PartitionSpec
from . import _logs
from ._foreign import foreign
from ._imports import import_of
from ._distributions import FOLLOWS, FOLLOWS_JAXLIB, NAMES, metadata
from ._standins import ALIASES, IMPORTED, MIRRORS, STANDINS, is_own

__all__ = ["ABSENT", "FOLLOWS", "absent", "install", "looked_up"]

# The modules that `import jax` imports: programs find them in `sys.modules`.
_WITH_JAX = """jax.api_util jax.core jax.custom_batching jax.custom_derivatives jax.debug jax.distributed jax.dlpack jax.dtypes jax.errors jax.experimental
    jax.experimental.compilation_cache jax.experimental.compilation_cache.compilation_cache jax.export jax.ffi jax.image jax.interpreters jax.interpreters.ad
    jax.interpreters.batching jax.interpreters.partial_eval jax.interpreters.pxla jax.interpreters.xla jax.lax jax.lax.linalg jax.lib jax.monitoring jax.nn
    jax.nn.initializers jax.numpy jax.numpy.fft jax.numpy.linalg jax.ops jax.profiler jax.random jax.ref jax.scipy jax.sharding jax.stages jax.tree
    jax.tree_util jax.typing jax.version jaxlib jaxlib._jax jaxlib.utils jaxlib.version jaxlib.weakref_lru_cache jaxlib.xla_client""".split()
_VERSIONS = {"jax": FOLLOWS, "jaxlib": FOLLOWS_JAXLIB}
ABSENT = object()
_IMPORT_FROM = dis.opmap["IMPORT_FROM"]
_MACHINERY = ("<frozen importlib", "importlib/__init__.py", "importlib\\__init__.py")


def absent(what, library):
    """The error message for a name or module of JAX that Ferrax does not have. library: the
    importing module, or None.
    """
    importer = f", which {library} uses" if library else ""
    return f"Ferrax has no {what}{importer}. Please report it with the library's version; docs/libraries.md lists what is known."


def _caller(frame):
    """The first frame outside the import machinery."""
    while frame is not None and (frame.f_code.co_filename.startswith(_MACHINERY[0]) or frame.f_code.co_filename.endswith(_MACHINERY[1:])):
        frame = frame.f_back
    return frame


def _library(frame):
    return frame.f_globals.get("__name__") if frame is not None else None


def _ours(name):
    """`jax.x.y` as `ferrax.x.y`."""
    return "ferrax" + name.removeprefix("jax")


def _target(path):
    """The object that a row of the table names: `core.Tracer`, `experimental.checkify`, or a dotted
    path outside Ferrax that starts with `:`.
    """
    path = path[1:] if path.startswith(":") else f"ferrax.{path}"
    module, _, rest = path, "", ""
    names = []
    while True:
        try:
            value = importlib.import_module(module)
            break
        except ModuleNotFoundError as e:
            if not module.startswith(e.name or "") or "." not in module:
                raise
            module, _, rest = module.rpartition(".")
            names.insert(0, rest)
    return functools.reduce(getattr, names, value)


def _absence(sentence, module, name, frame):
    """The error for an absent name, by the importing frame: `from m import name` replaces the
    message of an AttributeError.
    """
    if frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
        return ImportError(sentence, name=module.__name__)
    return AttributeError(sentence, name=name, obj=module)


def _with_errors(module):
    """Makes one of Ferrax's public modules, and the modules that are reached through it, name the
    importing module in errors about absent names.
    """
    names = dictionary(module)
    if isinstance(names.get("__getattr__"), _NamesImporter) or not _is_public(module):
        return module
    names["__getattr__"] = _NamesImporter(module, names.get("__getattr__"))
    for value in list(names.values()):
        if isinstance(value, types.ModuleType):
            _with_errors(value)
    return module


def _imported_as(module):
    """A public module that is reached as an attribute; from here on importing it under its name in
    JAX finds it.
    """
    name = getattr(module.__spec__, "name", "") or ""
    if _is_public(module) and "jax" in sys.modules:
        sys.modules.setdefault("jax" + name.removeprefix("ferrax"), module)
    return module


def _is_public(module):
    name = getattr(module.__spec__, "name", "") or ""
    return name.partition(".")[0] == "ferrax" and not any(part.startswith("_") or part == "compat" for part in name.split("."))


class _NamesImporter:
    """The `__getattr__` of a public module: its own, if it has one, and the message about an absent
    name.
    """

    def __init__(self, module, own):
        self.module, self.own = module, own

    def __call__(self, name):
        if self.own is not None:
            try:
                value = self.own(name)
                return _imported_as(_with_errors(value)) if isinstance(value, types.ModuleType) else value
            except AttributeError as e:
                # errors within are passed on unchanged
                if e.__traceback__.tb_next is None or e.__traceback__.tb_next.tb_next is not None:
                    raise
        spec = self.module.__spec__.name
        below = f"jax.{spec.partition('.')[2]}.{name}".replace("jax..", "jax.")
        if below in STANDINS:
            return importlib.import_module(below)
        if (value := foreign(f"jax.{spec.partition('.')[2]}", name)) is not None:
            return value
        row = STANDINS.get(f"jax.{spec.partition('.')[2]}", {}).get(name)
        if row is not None:
            return _target(row[0])
        if (path := import_of(f"jax.{spec.partition('.')[2]}", name)) is not None:
            return _target(f":{path}")
        frame = _caller(sys._getframe(1))
        if name.startswith("__") or frame is None:
            raise AttributeError(f"module '{self.module.__name__}' has no attribute '{name}'")
        raise _absence(absent(f"jax.{spec.partition('.')[2]}.{name}", _library(frame)), self.module, name, frame)


def _mirror(path):
    return importlib.import_module("ferrax" if path == "ferrax" else f"ferrax.{path}")


def _imported(name):
    """The names that JAX's internal modules import."""
    if name in ALIASES:
        return importlib.import_module(ALIASES[name].removeprefix(":"))
    return next((v for path in IMPORTED if (v := getattr(_mirror(path), name, ABSENT)) is not ABSENT), ABSENT)


class _StandIn(types.ModuleType):
    """A module of JAX's internals: the names that `_standins` lists for it, and no others."""

    def __init__(self, name):
        super().__init__(name, f"JAX internals that libraries use, as `{name}`: listed in ferrax.compat._standins.")
        self.__path__ = []

    def _find(self, name):
        row = STANDINS.get(self.__name__, {}).get(name)
        if row is not None:
            return _target(row[0])
        # a name that begins with an underscore is the internal module's own
        for path in () if name.startswith("_") else MIRRORS.get(self.__name__, ()):
            value = getattr(_mirror(path), name, ABSENT)
            if value is not ABSENT:
                return value
        below = f"{self.__name__}.{name}"
        if below in STANDINS:
            return importlib.import_module(below)
        if (value := foreign(self.__name__, name)) is not None:
            return value
        if (path := import_of(self.__name__, name)) is not None:
            return _target(f":{path}")
        return _imported(name) if self.__name__ in MIRRORS and not name.startswith("_") else ABSENT

    def __getattr__(self, name):
        value = self._find(name)
        if value is ABSENT:
            self._refuse(name, sys._getframe(1))
        dictionary(self)[name] = value
        return value

    def _refuse(self, name, frame):
        if name.startswith("__"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        raise _absence(absent(f"{self.__name__}.{name}", _library(frame)), self, name, frame)

    @property
    def __dict__(self):
        there = dictionary(self)
        for name in self.__dir__():
            if name not in there and (value := self._find(name)) is not ABSENT:
                there[name] = value
        return there

    def __dir__(self):
        below = (n.rpartition(".") for n in STANDINS)
        mirrored = (n for path in MIRRORS.get(self.__name__, ()) for n in dir(_mirror(path)) if not n.startswith("_"))
        return sorted({*dictionary(self), *STANDINS.get(self.__name__, ()), *mirrored, *(leaf for parent, _, leaf in below if parent == self.__name__)})


class _Root(_StandIn):
    """`jax` and `jaxlib`: all of Ferrax's public names, under the versions that are followed."""

    def __init__(self, name):
        super().__init__(name)
        self.__doc__ = f"{name}, served by Ferrax."
        self.__version__ = _VERSIONS[name]
        self.__version_info__ = tuple(int(n) for n in _VERSIONS[name].split("."))
        self.__file__ = __file__
        # Importing JAX registers the names of these dtypes with NumPy, where programs then look them up.
        importlib.import_module("ml_dtypes")
        # Libraries that take arrays of any namespace (array-api-compat, SciPy, scikit-learn) recognise JAX's by its name.
        importlib.import_module("ferrax.numpy").__name__ = "jax.numpy"

    def _find(self, name):
        if self.__name__ == "jax" and not name.startswith("__"):
            value = getattr(importlib.import_module("ferrax"), name, ABSENT)
            if value is not ABSENT:
                return _imported_as(_with_errors(value)) if isinstance(value, types.ModuleType) else value
        return super()._find(name)

    def __dir__(self):
        return sorted({*super().__dir__(), *(dir(importlib.import_module("ferrax")) if self.__name__ == "jax" else ())})


class _Loader(importlib.abc.Loader):
    """Returns an existing module, and restores the attributes that the import system changes."""

    def __init__(self, module):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        if self.spec is not None:
            module.__spec__ = self.spec
        if isinstance(module, _Root) and module.__name__ == "jax":
            for name in _WITH_JAX:
                importlib.import_module(name)
            for value in [m for name, m in sys.modules.items() if name.startswith("ferrax.") and isinstance(m, types.ModuleType)]:
                _imported_as(_with_errors(value))


class _Distribution(importlib.metadata.Distribution):
    """The distributions `jax` and `jaxlib` for `importlib.metadata`."""

    def __init__(self, name):
        self._name = name

    def read_text(self, filename):
        return metadata(self._name) if filename == "METADATA" else None

    def locate_file(self, path):
        return pathlib.Path(__file__).parent / path


class _Finder(importlib.metadata.DistributionFinder):
    """Finds `jax`, `jaxlib` and their submodules."""

    def find_spec(self, name, path=None, target=None):
        root, _, below = name.partition(".")
        # `from jax.experimental import x` looks it up below the name of that module, which is Ferrax's.
        if root == "ferrax" and f"jax.{below}" in STANDINS and not is_own(f"jax.{below}"):
            return self._spec(name, _StandIn(f"jax.{below}"))
        if root not in NAMES:
            return None
        module = self._module(name, root, below)
        if module is None:
            # An import raises an error that names the absent module; a query (importlib.util.find_spec) returns None.
            frame = sys._getframe(1)
            if frame.f_back is not None and frame.f_back.f_code.co_name == "_find_and_load_unlocked":
                raise ModuleNotFoundError(absent(f"module {name}", _library(_caller(frame))), name=name)
            return None
        return self._spec(name, module)

    @staticmethod
    def _spec(name, module):
        return importlib.machinery.ModuleSpec(name, _Loader(module), origin="ferrax.compat", is_package=hasattr(module, "__path__"))

    @staticmethod
    def _module(name, root, below):
        if not below:
            return _Root(root)
        try:
            there = root == "jax" and importlib.util.find_spec(_ours(name)) is not None
        except ModuleNotFoundError:  # its parent is absent
            there = False
        if there:
            return _with_errors(importlib.import_module(_ours(name)))
        return _StandIn(name) if name in STANDINS else None

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):  # noqa: B008 - the signature of the interface
        return [_Distribution(name) for name in NAMES if context.name is None or context.name.lower().replace("_", "-") == name]


def looked_up(name):
    """The object that a dotted name gives under `import jax`: `ABSENT` if it does not exist, True
    if the name is too deep to be resolved.
    """
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 1):
        if not isinstance(value, (types.ModuleType, type)):
            return True  # an attribute of an object, which may depend on its class
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            try:
                value = importlib.import_module(".".join(parts[: i + 1]))
            except Exception:
                return ABSENT
        except NotImplementedError:
            return True
    return value


def install():
    """Makes `import jax` and `import jaxlib` import Ferrax from here on, in this process.

    A second call has no effect.

    Raises:
        ImportError: JAX itself has been imported; libraries may hold its objects.
    """
    if any(isinstance(f, _Finder) for f in sys.meta_path):
        return
    for name, module in list(sys.modules.items()):
        # The package that `adopt` writes calls this while it is being imported itself.
        if name.partition(".")[0] in NAMES and not getattr(module, "FERRAX", False):
            raise ImportError(f"{name} has been imported from {getattr(module, '__file__', 'elsewhere')}: call ferrax.compat.install() before the first `import jax`")
    sys.meta_path.insert(0, _Finder())
    # Libraries that dispatch by type (autoray, plum) recognise JAX's arrays by the module of their class.
    for cls, module in ((_core.ArrayImpl, "jaxlib._jax"), (_core.Array, "jax"), (_core.Tracer, "jax._src.core"), (PartitionSpec, "jax")):
        cls.__module__ = module
    _logs.install()
    for name in NAMES:
        shell = sys.modules.pop(name, None)
        if shell is not None:
            importlib.import_module(name)
