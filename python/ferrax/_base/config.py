"""Configuration: flags with JAX's names, from three sources in rising order: environment,
`config.update`, a context manager.

Invariant: a context manager changes the flag for its own thread and block only. `FLAGS` is the one
table of them; their values live in the extension, where they are part of the keys of its caches.

    config.update("jax_enable_x64", True)        # or FERRAX_ENABLE_X64=1
    with enable_x64(True): ...
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _core
from .flags import FLAGS, _bool, _float, _int, _platform_name

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., Any]")

__version__: str = _core.__version__  # that of the workspace, in Cargo.toml

_NO_VALUE = type("_NoValue", (), {"__repr__": lambda self: "<no value>"})()
_read_by_absl = set()  # holds True once a command line has been read


class Config:
    """`config.update(name, value)`; every flag is also an attribute, `config.jax_enable_x64`."""

    __slots__ = ()

    if TYPE_CHECKING:  # the flags, which `__getattr__` finds in the table
        jax_enable_x64: bool
        jax_threefry_partitionable: bool
        jax_debug_nans: bool
        jax_debug_infs: bool
        jax_numpy_rank_promotion: Any
        jax_numpy_dtype_promotion: Any
        jax_strict_bounds: bool
        jax_disable_jit: bool
        jax_num_cpu_devices: Any
        jax_log_compiles: bool
        jax_explain_cache_misses: bool
        jax_check_tracer_leaks: bool
        jax_no_tracing: bool
        jax_default_matmul_precision: Any
        jax_default_device: Any
        jax_platforms: Any
        jax_enable_checks: bool
        jax_default_prng_impl: Any
        jax_enable_custom_prng: bool
        jax_legacy_prng_key: Any
        jax_random_seed_offset: Any
        jax_softmax_custom_jvp: bool
        jax_high_dynamic_range_gumbel: bool
        jax_explicit_x64_dtypes: Any
        jax_debug_key_reuse: bool
        jax_transfer_guard: Any
        jax_transfer_guard_host_to_device: Any
        jax_transfer_guard_device_to_host: Any
        jax_transfer_guard_device_to_device: Any
        jax_array_garbage_collection_guard: Any
        jax_compilation_cache_dir: Any
        jax_enable_compilation_cache: bool
        jax_persistent_cache_min_compile_time_secs: Any
        jax_persistent_cache_min_entry_size_bytes: Any
        jax_persistent_cache_enable_xla_caches: Any
        jax_raise_persistent_cache_errors: bool
        jax_compilation_cache_max_size: Any
        jax_traceback_filtering: Any
        jax_include_full_tracebacks_in_locations: bool
        jax_traceback_in_locations_limit: Any
        jax_hlo_source_file_canonicalization_regex: Any
        jax_cpu_enable_async_dispatch: bool
        jax_cpu_collectives_implementation: Any
        jax_distributed_debug: bool
        jax_disable_bwd_checks: bool
        jax_check_static_indices: bool
        jax_warn_of_gathers: bool
        jax_embedded_constants_max_bytes: Any
        jax_use_simplified_jaxpr_constants: bool
        jax_no_execution: bool
        jax_thread_guard: bool
        jax_auto_pcast: bool
        jax_remove_size_one_mesh_axis_from_type: bool
        jax_allow_f16_reductions: bool
        jax_use_direct_linearize: bool
        jax_remat3: bool
        jax_custom_vjp3: bool
        jax_optimization_level: Any
        jax_memory_fitting_level: Any
        jax_exec_time_optimization_effort: Any
        jax_memory_fitting_effort: Any
        jax_use_shardy_partitioner: bool
        jax_pgle_profiling_runs: Any
        jax_compiler_enable_remat_pass: bool
        jax_logging_level: Any
        jax_debug_log_modules: Any
        jax_disallow_mesh_context_manager: bool
        jax_error_checking_behavior_nan: Any
        jax_error_checking_behavior_divide: Any
        jax_error_checking_behavior_oob: Any
        jax_dump_ir_to: Any
        jax_dump_ir_modes: Any
        jax_include_debug_info_in_dumps: bool
        jax_pprint_use_color: bool
        jax_source_url_schema: Any
        jax_mock_gpu_topology: Any
        jax_cuda_visible_devices: Any
        jax_rocm_visible_devices: Any
        jax_oneapi_visible_devices: Any
        jax_pjrt_client_create_options: Any
        jax_sort_devices_by_process_index: bool
        jax_use_magma: Any
        jax_bcoo_cusparse_lowering: bool
        jax_threefry_gpu_kernel_lowering: bool
        jax_ragged_dot_use_gpu_pallas_triton_lowering: bool
        jax_pallas_use_mosaic_gpu: bool
        jax_mosaic_allow_hlo: bool
        jax_use_emit_pipeline_primitive: bool
        jax_disable_most_optimizations: bool
        jax_compiler_detailed_logging_min_ops: Any
        jax_enable_pgle: bool
        jax_pgle_aggregation_percentile: Any
        jax_xla_profile_version: Any
        jax_xla_backend: Any
        jax_backend_target: Any
        jax_experimental_unsafe_xla_runtime_errors: bool
        jax_send_traceback_to_runtime: Any
        jax_ragged_dot_use_ragged_dot_instruction: bool
        jax_pallas_enable_debug_checks: bool
        jax_pallas_poison_buffers: bool
        jax_pallas_verbose_errors: bool
        jax_export_calling_convention_version: Any
        jax_export_ignore_forward_compatibility: bool
        jax_serialization_version: Any
        jax_compilation_cache_check_contents: bool
        jax_compilation_cache_expect_pgle: bool
        jax_compilation_cache_include_metadata_in_key: bool
        jax_remove_custom_partitioning_ptr_from_cache_key: bool
        jax_share_binary_between_hosts: bool
        jax_share_binary_between_hosts_timeout_ms: Any
        jax_check_proxy_envs: bool
        jax_cpu_get_global_topology_timeout_minutes: Any
        jax_cpu_get_local_topology_timeout_minutes: Any
        jax_cross_host_transfer_socket_address: Any
        jax_cross_host_transport_addresses: Any
        jax_cross_host_transfer_timeout_seconds: Any
        jax_cross_host_transfer_transfer_size: Any
        jax_force_dcn_cross_host_transfers: bool
        jax_enable_preemption_service: bool
        jax_enable_recoverability: bool
        jax_disable_vmap_shmap_error: bool
        jax_mutable_array_checks: bool
        jax_refs_to_pins: bool
        jax_scan3: bool
        jax_captured_constants_warn_bytes: Any
        jax_captured_constants_report_frames: Any
        jax_log_checkpoint_residuals: bool
        jax_debug_leaked_clients_on_clear_backends: bool
        jax_tracer_error_num_traceback_frames: Any

    def update(self, name: str, val: Any) -> None:
        """Sets a flag for the whole process.

        Raises:
            AttributeError: the flag does not exist.
            ValueError: the value is not valid for the flag.
            NotImplementedError: the value requests something unsupported.
        """
        if name == "jax_platform_name":
            _platform_name(val)
        elif name in FLAGS:
            FLAGS[name].set(val)
        else:
            raise AttributeError(f"Unrecognized config option: {name}")

    def read(self, name: str) -> Any:
        """The flag's current value. Raises AttributeError if the flag does not exist."""
        if name not in FLAGS:
            raise AttributeError(f"Unrecognized config option: {name}")
        return FLAGS[name].get()

    @property
    def values(self) -> dict[str, Any]:
        """All flags and their values."""
        return {name: flag.get() for name, flag in FLAGS.items()}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit types are on."""
        return FLAGS["jax_enable_x64"].get()

    def config_with_absl(self) -> None:
        """Defines each flag as a flag of absl, `--jax_enable_x64`; those on the command line are
        set when absl's `app.run` has parsed it.

        Raises:
            ImportError: absl-py is not installed.
        """
        from absl import app, flags

        def fits(value, flag):
            try:
                flag.parse(flag.name, value)
            except ValueError as e:
                raise flags.ValidationError(str(e)) from None
            return True

        define = {_bool: flags.DEFINE_bool, _int: flags.DEFINE_integer, _float: flags.DEFINE_float}
        for flag in FLAGS.values():
            if flag.name not in flags.FLAGS:
                define.get(flag.parse, flags.DEFINE_string)(flag.name, flag.default, flag.doc, module_name=__name__)
                flags.register_validator(flag.name, functools.partial(fits, flag=flag))
        app.call_after_init(lambda: self.complete_absl_config(flags))

    def complete_absl_config(self, absl_flags: Any) -> None:
        """Sets the flags that a command line named, which absl has read. absl_flags: the module
        `absl.flags`.
        """
        for name in FLAGS:
            if name in absl_flags.FLAGS and absl_flags.FLAGS[name].present:
                self.update(name, absl_flags.FLAGS[name].value)

    def parse_flags_with_absl(self) -> None:
        """Sets the flags that this process's command line names, up to a `--`, for programs that do
        not run absl's `app`.

        The first call counts.

        Raises:
            ImportError: absl-py is not installed.
        """
        from absl import flags

        if _read_by_absl:
            return
        _read_by_absl.add(True)
        self.config_with_absl()
        flags.FLAGS(list(itertools.takewhile(lambda a: a != "--", sys.argv)), known_only=True)
        self.complete_absl_config(flags)

    if not TYPE_CHECKING:  # a checker would take every name for a flag

        def __getattr__(self, name):
            if name in FLAGS:
                return FLAGS[name].get()
            raise AttributeError(f"'Config' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        if name in FLAGS:
            raise AttributeError(f"'Config' attribute '{name}' cannot be assigned to: use config.update('{name}', {value!r})")
        raise AttributeError(f"'Config' object has no attribute '{name}'")

    def __dir__(self):
        return [*super().__dir__(), *FLAGS]

    def __repr__(self):
        """The flags whose value differs from the default."""
        changed = [f"{name}={value!r}" for name, value in self.values.items() if value != FLAGS[name].default]
        return f"config({', '.join(changed)})"

    def __reduce__(self):
        return "config"


config = Config()


class _Setting:
    """A flag's context manager and decorator: `enable_x64(True)`; `.value` is the present value."""

    def __init__(self, name):
        self._flag = FLAGS[name]
        self.__name__ = self.__qualname__ = name.removeprefix("jax_")
        self.__doc__ = f"""Context manager and decorator for {name}: {self._flag.doc}, within the block or function and on this thread.

        Args:
            new_val: the flag's value within the block; for a boolean flag, True by default.

        Returns:
            A context manager, which is also a decorator.

        Raises:
            ValueError: for a value that the flag does not have.
            NotImplementedError: for a value that requires an unsupported feature.
            TypeError: if the value is left out and the flag is not boolean.
        """

    def __repr__(self):
        return f"<{self.__name__}: {self.value!r}>"

    @property
    def value(self) -> Any:
        """The present value."""
        return self._flag.get()

    def __call__(self, new_val: Any = _NO_VALUE) -> _Override:
        if new_val is _NO_VALUE:
            if self._flag.parse is not _bool:
                raise TypeError(f"Context manager for {self._flag.name} config option requires an argument representing the new value for the config option.")
            new_val = True
        return _Override(self._flag, self._flag.checked(new_val))


class _Override:
    """Sets a flag inside `with`, or while the decorated function runs.

    Nests; each thread has its own value.
    """

    __slots__ = ("_flag", "_value")

    def __init__(self, flag, value):
        self._flag, self._value = flag, value

    def __repr__(self):
        return f"{self._flag.name.removeprefix('jax_')}({self._value!r})"

    def __enter__(self) -> None:
        self._flag.push(self._value)

    def __exit__(self, *exc: object) -> None:
        self._flag.pop()

    def __call__(self, fun: _F, /) -> _F:
        @functools.wraps(fun)
        def with_the_value(*args, **kwargs):
            with self:
                return fun(*args, **kwargs)

        return with_the_value


enable_x64 = _Setting("jax_enable_x64")
threefry_partitionable = _Setting("jax_threefry_partitionable")
debug_nans = _Setting("jax_debug_nans")
debug_infs = _Setting("jax_debug_infs")
numpy_rank_promotion = _Setting("jax_numpy_rank_promotion")
numpy_dtype_promotion = _Setting("jax_numpy_dtype_promotion")
log_compiles = _Setting("jax_log_compiles")
explain_cache_misses = _Setting("jax_explain_cache_misses")
check_tracer_leaks = checking_leaks = _Setting("jax_check_tracer_leaks")
default_matmul_precision = _Setting("jax_default_matmul_precision")
default_device = _Setting("jax_default_device")
enable_checks = _Setting("jax_enable_checks")
default_prng_impl = _Setting("jax_default_prng_impl")
enable_custom_prng = _Setting("jax_enable_custom_prng")
legacy_prng_key = _Setting("jax_legacy_prng_key")
softmax_custom_jvp = _Setting("jax_softmax_custom_jvp")
no_tracing = _Setting("jax_no_tracing")
strict_bounds = _Setting("jax_strict_bounds")
array_garbage_collection_guard = _Setting("jax_array_garbage_collection_guard")
debug_key_reuse = _Setting("jax_debug_key_reuse")
no_execution = _Setting("jax_no_execution")
thread_guard = _Setting("jax_thread_guard")
auto_pcast = _Setting("jax_auto_pcast")
remove_size_one_mesh_axis_from_type = _Setting("jax_remove_size_one_mesh_axis_from_type")
allow_f16_reductions = _Setting("jax_allow_f16_reductions")
transfer_guard = _Setting("jax_transfer_guard")
transfer_guard_host_to_device = _Setting("jax_transfer_guard_host_to_device")
transfer_guard_device_to_host = _Setting("jax_transfer_guard_device_to_host")
transfer_guard_device_to_device = _Setting("jax_transfer_guard_device_to_device")


class UserContext:
    """A value that programs depend on: a function is traced again where it has another.

    `with context(value):` sets it in a block, on this thread.
    """

    def __init__(self, name, default):
        self._name = name
        _core.config_define(name, default, True)

    @property
    def value(self):
        """The present value."""
        return _core.config_get(self._name)

    def get_global(self):
        """The present value."""
        return self.value

    def set_global(self, value):
        """Sets the value for the whole process."""
        _core.config_set(self._name, value)

    def __call__(self, value):
        return _InContext(self._name, value)


class _InContext:
    def __init__(self, name, value):
        self._name, self._value = name, value

    def __enter__(self):
        _core.config_push(self._name, self._value)

    def __exit__(self, *exc):
        _core.config_pop(self._name)


# The platform that a function is exported for, while it is traced.
exporting_for = UserContext("export_platform", None)

_contexts = itertools.count()


def make_user_context(default_value: Any = None) -> UserContext:
    """A `UserContext`, a value of the user's own that programs depend on.

    Args:
        default_value: the value outside all blocks.

    Returns:
        `UserContext`.

    >>> scale = make_user_context(1)
    >>> with scale(3): print(scale.value)
    3
    """
    return UserContext(f"user_context_{next(_contexts)}", default_value)


def disable_jit(disable: bool = True) -> _Override:
    """Context manager and decorator: jitted functions and loops inside run operation by operation,
    so that values can be inspected.

    Args:
        disable: bool.

    Returns:
        Context manager, also a decorator.
    """
    return _Override(FLAGS["jax_disable_jit"], bool(disable))


def disable_x64() -> _Override:
    """Context manager: an older name of `enable_x64(False)`.

    Returns:
        Context manager, also a decorator.
    """
    return enable_x64(False)


def _read_environment():
    for name, flag in FLAGS.items():
        text = os.environ.get("FERRAX_" + name.removeprefix("jax_").upper())
        if text is not None:
            flag.set(text)


_read_environment()
