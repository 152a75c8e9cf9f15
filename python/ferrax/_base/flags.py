"""The table of flags: JAX's names, each with a parser, a default and what its values do.

Invariant: the extension stores the values, for each thread; a value that has no effect warns once,
one that is not supported raises.

    FLAGS["jax_enable_x64"].get()
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core

if TYPE_CHECKING:
    from collections.abc import Callable
_F = TypeVar("_F", bound="Callable[..., Any]")


_warned = set()
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def _bool(name, value):
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("y", "yes", "t", "true", "on", "1"):
            return True
        if word in ("n", "no", "f", "false", "off", "0", ""):
            return False
    raise ValueError(f"invalid truth value {value!r} for {name}")


def _one_of(*allowed, optional=False):
    def parse(name, value):
        if optional and value is None:
            return None
        if not isinstance(value, str) or value not in allowed:
            none = "None or " if optional else ""
            raise ValueError(f"new enum value must be {none}in {list(allowed)}, got {value} of type {type(value)}.")
        return value

    return parse


def _show_from(level):
    from .log_levels import show_from

    show_from(level)


def _show_all_of(names):
    from .log_levels import show_all_of

    show_all_of(names)


def _of(type_, word):
    """Values of one type or None; from the environment their text."""

    def parse(name, value):
        if isinstance(value, str) and type_ is not str:
            try:
                return type_(value)
            except ValueError:
                pass
        if value is None or isinstance(value, type_) or (type_ is float and isinstance(value, int)):
            return value
        raise ValueError(f"new {word} config value must be None or of type {word}, got {value} of type {type(value)}")

    return parse


_int, _float, _str = _of(int, "int"), _of(float, "float"), _of(str, "string")


def _outside():
    """The `stacklevel`, for a warning of the calling function, of the innermost line that is not
    this library's.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def warn_once(key, text):
    """Warns that an option is accepted without effect, once for each `key`."""
    if key not in _warned:
        _warned.add(key)
        warnings.warn(text, stacklevel=_outside())


def inert(function, option, why):
    """Warns, once, that an option is accepted without effect."""
    warn_once((function, option), f"{function}: {option} is accepted and has no effect: {why}")


def refused(function, option, value, why):
    """Raises NotImplementedError for an unsupported value of an option."""
    raise NotImplementedError(f"{function}: {option}={value!r} is not supported: {why}")


def no_sharding(function, sharding):
    """Raises NotImplementedError if a result should be sharded.

    A sharding over a mesh without axes is accepted.
    """
    if getattr(getattr(sharding, "mesh", None), "axis_names", None) == ():
        return
    refused(function, "out_sharding", sharding, "results of sparse operations are not laid out over meshes; use device_put on their parts")


class Flag:
    """One flag: its parser, its default, and the effect of its values.

    A value takes effect, or it is in `refused`, which maps values that raise to their reasons, or
    `inert` gives the reason why values other than the default have no effect; then setting one
    warns once. If tracing depends on the flag, `traced` makes its value part of the cache key of
    traces.
    """

    __slots__ = ("changed", "default", "doc", "inert", "name", "parse", "refused", "traced")

    def __init__(self, name, parse, default, doc, *, traced=False, inert=None, refused=None):
        self.name, self.parse, self.default, self.doc, self.traced = name, parse, default, doc, traced
        self.inert, self.refused = inert, refused or {}
        # PERF: whether it ever had another value than the default; until then frequent readers need not call the extension.
        self.changed = False
        _core.config_define(name, default, traced)

    def get(self):
        return _core.config_get(self.name)

    def checked(self, value):
        """`value` as the flag stores it.

        Raises:
            ValueError: the flag does not take it.
            NotImplementedError: the value requests something unsupported.
        """
        value = self.parse(self.name, value)
        self.changed = self.changed or value != self.default
        if value in self.refused:
            raise NotImplementedError(f"{self.name}={value!r}: {self.refused[value]}")
        if self.inert and value != self.default:
            warn_once(self.name, f"{self.name} is accepted and has no effect: {self.inert}")
        return value

    def set(self, value):
        _core.config_set(self.name, self.checked(value))

    def push(self, value):
        """Sets the value on this thread, until `pop`."""
        _core.config_push(self.name, value)

    def pop(self):
        """Ends a `push`."""
        _core.config_pop(self.name)


class _Guards(Flag):
    """A flag that sets the guards of all directions."""

    __slots__ = ()
    ways = ("host_to_device", "device_to_host", "device_to_device")

    def set(self, value):
        super().set(value)
        for way in self.ways:
            _core.config_set(f"{self.name}_{way}", self.get())

    def push(self, value):
        super().push(value)
        for way in self.ways:
            _core.config_push(f"{self.name}_{way}", value)

    def pop(self):
        super().pop()
        for way in self.ways:
            _core.config_pop(f"{self.name}_{way}")


class _Logging(Flag):
    """A flag for what the logs show, those with JAX's names and Ferrax's own: `apply(value)` sets
    it for the whole process.
    """

    __slots__ = ("apply",)

    def __init__(self, name, parse, default, doc, apply):
        super().__init__(name, parse, default, doc)
        self.apply = apply

    def set(self, value):
        super().set(value)
        self.apply(self.get())


def _device(name, value):
    if isinstance(value, str):
        try:
            _core.devices(value)
            return value
        except RuntimeError:
            pass
    if value is not None and not isinstance(value, _core.Device):
        raise ValueError(
            "jax.default_device must be passed either a Device object (e.g. `jax.devices('cpu')[0]`) or a platform name string like"
            f" 'cpu' or 'gpu', got: {value!r}"
        )
    return value


_PRECISIONS = (
    "default",
    "high",
    "highest",
    "bfloat16",
    "tensorfloat32",
    "float32",
    "bfloat16_3x",
    "DEFAULT",
    "HIGH",
    "HIGHEST",
    "fastest",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)


_NO_CACHE = "compiled programs are kept in memory only"


NO_OTHER_COMPILER = "it steers a compiler that is not used here"


_BY_MPI = "processes find each other and talk by MPI"


_ONE_WAY = "programs are derived in one way"


_GUARD = _one_of("allow", "log", "disallow", "log_explicit", "disallow_explicit", optional=True)


_LEVELS = _one_of("UNKNOWN", "O0", "O1", "O2", "O3")


def _explicit_x64(name, value):
    if value == "allow":
        raise NotImplementedError(f"{name}={value!r}: 64-bit types are on for all of a program, or off; turn them on with jax_enable_x64")
    return _one_of("allow", "warn", "error")(name, value)


# JAX's flags that choose between implementations of which there is one here, by the reason.
_WITHOUT_EFFECT = {
    "text of programs is made on demand (`jit(f).lower(..).as_text()`), not written to files": (
        ("jax_dump_ir_to", _str, "", "a folder to which programs are written as they are compiled"),
        ("jax_dump_ir_modes", _str, "stablehlo", "the languages in which programs are written there"),
        ("jax_include_debug_info_in_dumps", _bool, True, "write source locations with them"),
        ("jax_pprint_use_color", _bool, True, "colours in printed programs"),
        ("jax_source_url_schema", _str, None, "the scheme of links to source lines"),
    ),
    "there are no such devices": (
        ("jax_mock_gpu_topology", _str, "", "how many GPUs to simulate, as a topology"),
        ("mock_num_gpu_processes", _int, 0, "how many processes with GPUs to simulate"),
        ("jax_cuda_visible_devices", _str, "all", "the CUDA devices that are used"),
        ("jax_rocm_visible_devices", _str, "all", "the ROCm devices that are used"),
        ("jax_oneapi_visible_devices", _str, "all", "the oneAPI devices that are used"),
        ("jax_pjrt_client_create_options", _str, None, "options of a plugin for devices"),
        ("jax_sort_devices_by_process_index", _bool, True, "order devices by their process"),
        ("jax_use_magma", _one_of("off", "on", "auto"), "auto", "a library of decompositions on GPUs"),
        ("jax_bcoo_cusparse_lowering", _bool, False, "a library of sparse products on GPUs"),
        ("jax_threefry_gpu_kernel_lowering", _bool, False, "a kernel for random bits on GPUs"),
        ("jax_ragged_dot_use_gpu_pallas_triton_lowering", _bool, False, "a kernel for ragged products on GPUs"),
        ("jax_pallas_use_mosaic_gpu", _bool, True, "how Pallas compiles for GPUs"),
        ("jax_mosaic_allow_hlo", _bool, False, "what Pallas kernels for TPUs may contain"),
        ("jax_use_emit_pipeline_primitive", _bool, False, "how Pallas pipelines are derived"),
    ),
    NO_OTHER_COMPILER: (
        ("jax_disable_most_optimizations", _bool, False, "compile fast code slowly, or slow code fast"),
        ("jax_compiler_detailed_logging_min_ops", _int, 10, "how large a program is whose compilation is logged in detail"),
        ("jax_enable_pgle", _bool, False, "compile again after profiled runs"),
        ("jax_pgle_aggregation_percentile", _int, 90, "which of the profiled runs count"),
        ("jax_xla_profile_version", _int, 0, "the version of a profile"),
        ("jax_xla_backend", _str, "", "which implementation of the compiler's runtime is used"),
        ("jax_backend_target", _str, "", "the address of a remote backend"),
        ("jax_experimental_unsafe_xla_runtime_errors", _bool, False, "errors raised by kernels"),
        ("jax_send_traceback_to_runtime", _one_of("off", "on", "full"), "off", "call stacks passed to the compiler's runtime"),
        ("jax_ragged_dot_use_ragged_dot_instruction", _bool, True, "how ragged products are compiled"),
        ("jax_pallas_enable_debug_checks", _bool, False, "checks inside Pallas kernels"),
        ("jax_pallas_poison_buffers", _bool, False, "fill fresh memory of Pallas kernels with NaN"),
        ("jax_pallas_verbose_errors", _bool, False, "whole programs in Pallas errors"),
        ("jax_export_calling_convention_version", _int, 10, "the calling convention of exported programs"),
        ("jax_export_ignore_forward_compatibility", _bool, False, "export operations that older versions do not know"),
        ("jax_serialization_version", _int, 0, "the version of exported programs"),
        ("jax2tf_associative_scan_reductions", _bool, False, "how jax2tf exports cumulative sums"),
        ("jax2tf_default_native_serialization", _bool, True, "how jax2tf exports programs"),
    ),
    _NO_CACHE: (
        ("jax_compilation_cache_check_contents", _bool, False, "compare kept programs with new ones"),
        ("jax_compilation_cache_expect_pgle", _bool, False, "warn where a kept program was not profiled"),
        ("jax_compilation_cache_include_metadata_in_key", _bool, False, "keep programs by their source locations too"),
        ("jax_remove_custom_partitioning_ptr_from_cache_key", _bool, False, "keep programs with custom partitioning"),
        ("jax_share_binary_between_hosts", _bool, False, "one process compiles for all"),
        ("jax_share_binary_between_hosts_timeout_ms", _int, 20 * 60 * 1000, "how long the others wait for it"),
    ),
    "processes talk over MPI": (
        ("jax_check_proxy_envs", _bool, True, "warn where a proxy may be in the way of processes"),
        ("jax_cpu_get_global_topology_timeout_minutes", _int, 5, "how long processes wait for all devices"),
        ("jax_cpu_get_local_topology_timeout_minutes", _int, 2, "how long a process waits for its devices"),
        ("jax_cross_host_transfer_socket_address", _str, "", "where a process listens for transfers"),
        ("jax_cross_host_transport_addresses", _str, "", "where a process sends transfers"),
        ("jax_cross_host_transfer_timeout_seconds", _int, None, "how long a transfer may take"),
        ("jax_cross_host_transfer_transfer_size", _int, None, "how large the parts of a transfer are"),
        ("jax_force_dcn_cross_host_transfers", _bool, False, "transfers over the data centre's network"),
        ("jax_enable_preemption_service", _bool, True, "notice that a process is about to be preempted"),
        ("jax_enable_recoverability", _bool, False, "let processes leave and return"),
    ),
    _ONE_WAY: (
        ("eager_constant_folding", _bool, False, "compute with constants while tracing"),
        ("jax_disable_vmap_shmap_error", _bool, False, "let vmap cross a shard_map"),
        ("jax_mutable_array_checks", _bool, True, "look for references that are passed twice"),
        ("jax_refs_to_pins", _bool, False, "how references are compiled"),
        ("jax_scan3", _bool, False, "how scan is derived"),
    ),
    "nothing of it is reported": (
        ("jax_captured_constants_warn_bytes", _int, 2_000_000_000, "warn where a program captures more bytes"),
        ("jax_captured_constants_report_frames", _int, 0, "how many call stack frames that warning shows"),
        ("jax_log_checkpoint_residuals", _bool, False, "log what checkpoint stores"),
        ("jax_debug_leaked_clients_on_clear_backends", _bool, False, "look for users of a backend that is cleared"),
        ("jax_tracer_error_num_traceback_frames", _int, 5, "how many call stack frames an error about a tracer shows"),
    ),
}


FLAGS = {
    f.name: f
    for f in (
        Flag("jax_enable_x64", _bool, False, "64-bit types by default, and kept when asked for"),
        Flag("jax_threefry_partitionable", _bool, True, "the counter layout of random bits"),
        Flag("jax_debug_nans", _bool, False, "raise FloatingPointError at the operation that makes a NaN"),
        Flag("jax_debug_infs", _bool, False, "raise FloatingPointError at the operation that makes an infinity"),
        Flag("jax_numpy_rank_promotion", _one_of("allow", "warn", "raise"), "allow", "implicit broadcasting of ranks"),
        Flag("jax_numpy_dtype_promotion", _one_of("standard", "strict"), "standard", "implicit promotion of dtypes"),
        Flag("jax_strict_bounds", _bool, False, "raise IndexError for an index out of bounds, under jit too", traced=True),
        Flag("jax_check_static_indices", _bool, False, "raise IndexError for an integer out of bounds in an index that reads", traced=True),
        Flag("jax_disable_jit", _bool, False, "run jitted functions and loops operation by operation"),
        Flag("jax_num_cpu_devices", _int, -1, "how many CPU devices there are; set it before the first array is made"),
        Flag("jax_log_compiles", _bool, False, "log each trace and compilation with the time it took, as warnings; without it they are debug messages"),
        Flag("jax_explain_cache_misses", _bool, False, "log why a jitted function was traced again"),
        Flag("jax_check_tracer_leaks", _bool, False, "raise when a trace ends while one of its tracers is still alive"),
        Flag("jax_no_tracing", _bool, False, "raise where a jitted function would be traced"),
        Flag("jax_warn_of_gathers", _bool, False, "warn where an operation makes every device gather a whole array that devices hold in parts"),
        Flag(
            "jax_default_matmul_precision",
            _one_of(*_PRECISIONS, optional=True),
            None,
            "precision of matrix products; the requested one is always exceeded",
            traced=True,
        ),
        Flag("jax_default_device", _device, None, "where new arrays are put"),
        Flag("jax_platforms", _str, None, "the platforms there are, separated by commas, the default first"),
        Flag("jax_enable_checks", _bool, False, "verify every program that is built"),
        Flag("jax_default_prng_impl", _one_of("threefry2x32", "rbg", "unsafe_rbg"), "threefry2x32", "the generator of new keys", traced=True),
        Flag("jax_enable_custom_prng", _bool, False, "make PRNGKey return typed keys", traced=True),
        Flag("jax_legacy_prng_key", _one_of("allow", "warn", "error"), "allow", "what to do when a raw key is drawn from", traced=True),
        Flag("jax_random_seed_offset", _int, 0, "added to every seed", traced=True),
        Flag("jax_softmax_custom_jvp", _bool, False, "the memory-saving derivative of softmax", traced=True),
        Flag("jax_high_dynamic_range_gumbel", _bool, False, "draw gumbel variates with more bits in the tail", traced=True),
        Flag(
            "jax_explicit_x64_dtypes",
            _explicit_x64,
            "warn",
            "what asking for a 64-bit type does while they are off: warn and give the 32-bit type, or raise",
            traced=True,
        ),
        Flag("jax_debug_key_reuse", _bool, False, "raise KeyReuseError where a random key is consumed twice"),
        _Guards("jax_transfer_guard", _GUARD, None, "what a transfer between host and devices does, in either direction"),
        Flag("jax_transfer_guard_host_to_device", _GUARD, None, "what a transfer to a device does"),
        Flag("jax_transfer_guard_device_to_host", _GUARD, None, "what a transfer to the host does", inert="reading an array is not a guarded transfer"),
        Flag("jax_transfer_guard_device_to_device", _GUARD, None, "what a transfer between devices does"),
        Flag(
            "jax_array_garbage_collection_guard",
            _one_of("allow", "log", "fatal", optional=True),
            None,
            "what happens when the collector frees an array",
            refused={"fatal": "the collector frees arrays as any other object"},
            inert="collected arrays are not logged",
        ),
        Flag("jax_compilation_cache_dir", _str, None, "where compiled programs are kept between runs", inert=_NO_CACHE),
        Flag("jax_enable_compilation_cache", _bool, True, "keep compiled programs between runs", inert=_NO_CACHE),
        Flag("jax_persistent_cache_min_compile_time_secs", _float, 1.0, "programs compiled faster are not kept between runs", inert=_NO_CACHE),
        Flag("jax_persistent_cache_min_entry_size_bytes", _int, 0, "smaller programs are not kept between runs", inert=_NO_CACHE),
        Flag("jax_persistent_cache_enable_xla_caches", _str, "xla_gpu_per_fusion_autotune_cache_dir", "which caches of the compiler are kept", inert=_NO_CACHE),
        Flag("jax_raise_persistent_cache_errors", _bool, False, "raise where keeping a program fails", inert=_NO_CACHE),
        Flag("jax_compilation_cache_max_size", _int, -1, "how many bytes of programs are kept between runs", inert=_NO_CACHE),
        Flag(
            "jax_traceback_filtering",
            _one_of("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
            "auto",
            "which frames tracebacks show",
        ),
        Flag("jax_include_full_tracebacks_in_locations", _bool, True, "whole call stacks beside operations", inert="an operation remembers its innermost line"),
        Flag(
            "jax_traceback_in_locations_limit",
            _int,
            10,
            "the number of call stack frames in an operation's location",
            inert="an operation remembers its innermost line",
        ),
        Flag(
            "jax_hlo_source_file_canonicalization_regex",
            _str,
            None,
            "a pattern that is removed from the names of source files",
            inert="names of source files are not changed",
        ),
        Flag("jax_cpu_enable_async_dispatch", _bool, True, "long programs run beside Python", inert="long programs always do"),
        Flag("jax_cpu_collectives_implementation", _one_of("gloo", "mpi", "megascale", optional=True), "gloo", "how processes talk", inert=_BY_MPI),
        Flag("jax_distributed_debug", _bool, False, "log what a distributed run does", inert=_BY_MPI),
        Flag("jax_disable_bwd_checks", _bool, False, "take the results of bwd rules as they are, of whatever shape and dtype"),
        Flag(
            "jax_embedded_constants_max_bytes",
            _int,
            32,
            "larger constants are arguments of programs",
            inert="constants of rank 0 are part of programs, others are inputs",
        ),
        Flag(
            "jax_use_simplified_jaxpr_constants",
            _bool,
            False,
            "constants are part of programs",
            inert="constants of rank 0 are part of programs, others are inputs",
        ),
        Flag("jax_no_execution", _bool, False, "raise where a program would run", refused={True: "programs run when they are called; trace or lower them"}),
        Flag("jax_thread_guard", _bool, False, "raise where another thread runs programs", refused={True: "every thread may run programs"}),
        Flag("jax_auto_pcast", _bool, True, "in a `shard_map`, cast operands to vary over the same mesh axes", traced=True),
        Flag("jax_remove_size_one_mesh_axis_from_type", _bool, False, "leave mesh axes of size one out of types", traced=True),
        Flag("jax_allow_f16_reductions", _bool, True, "let lax.reduce_sum add up elements of 16 bits", traced=True),
        Flag("jax_use_direct_linearize", _bool, True, "how linearize is derived", inert=_ONE_WAY),
        Flag("jax_remat3", _bool, False, "how checkpoint is derived", inert=_ONE_WAY),
        Flag("jax_custom_vjp3", _bool, False, "how custom_vjp is derived", inert=_ONE_WAY),
        Flag("jax_optimization_level", _LEVELS, "UNKNOWN", "how much is optimised", inert=NO_OTHER_COMPILER),
        Flag("jax_memory_fitting_level", _LEVELS, "O2", "how hard memory is saved", inert=NO_OTHER_COMPILER),
        Flag("jax_exec_time_optimization_effort", _float, 0.0, "how hard time is saved", inert=NO_OTHER_COMPILER),
        Flag("jax_memory_fitting_effort", _float, 0.0, "how hard memory is saved", inert=NO_OTHER_COMPILER),
        Flag("jax_use_shardy_partitioner", _bool, True, "how programs are cut over devices", inert=NO_OTHER_COMPILER),
        Flag("jax_pgle_profiling_runs", _int, 3, "runs that are profiled before compiling again", inert=NO_OTHER_COMPILER),
        Flag("jax_compiler_enable_remat_pass", _bool, True, "recompute to save memory", inert=NO_OTHER_COMPILER),
        _Logging(
            "jax_logging_level",
            _one_of("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", optional=True),
            "NOTSET",
            "from which level on log records are shown on the standard error stream",
            _show_from,
        ),
        _Logging(
            "jax_debug_log_modules",
            _str,
            "",
            "names of loggers, separated by commas, all of whose records are shown on the standard error stream",
            _show_all_of,
        ),
        Flag(
            "jax_disallow_mesh_context_manager",
            _bool,
            False,
            "raise where a mesh is entered by `with mesh:`",
            refused={True: "a mesh may be entered; set_mesh is what replaces it"},
        ),
        *(
            Flag(
                f"jax_error_checking_behavior_{what}",
                _one_of("ignore", "raise"),
                "ignore",
                f"what {doc} does inside programs",
                refused={"raise": "checkify makes these checks"},
            )
            for what, doc in (("nan", "a NaN"), ("divide", "a division by zero"), ("oob", "an index out of bounds"))
        ),
        *(Flag(name, parse, default, doc, inert=why) for why, rows in _WITHOUT_EFFECT.items() for name, parse, default, doc in rows),
    )
}


def _platform_name(value):
    """`jax_platform_name`, which can be set and not read: the platform that is the default among
    those there are.
    """
    FLAGS["jax_platforms"].set(value or None)
