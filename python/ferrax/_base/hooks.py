"""The functions of this package that the extension calls: a loader for each slot of
`crates/ferrax-python/src/hooks.rs`.

Invariant: a loader is called once, at the first use of its slot, and imports the module of the
function that it returns; importing this module imports nothing. The slot `lowerings` is filled by
its own module, before which it cannot be used.
"""

import os

from .. import _core


def getitem():
    from ..numpy._indexing.at import getitem

    return getitem


def holders():
    from .._tracing.leaks import holders

    return holders


def index_update_helper():
    from ..numpy._indexing.at import IndexUpdateHelper

    return IndexUpdateHelper


def transfer():
    from .._sharding.transfer_guards import transfer

    return transfer


def symbolic_slice():
    from .._export.traced_sizes import sliced

    return sliced


def numpy():
    from .. import numpy

    return numpy


def lax():
    from .. import lax

    return lax


def unpickled_key():
    from ..random import _unpickled

    return _unpickled


def mesh_of_devices():
    from .._runtime.mesh import of_devices

    return of_devices


def sharding_of_cuts():
    from .._sharding.shardings import _of_cuts

    return _of_cuts


def manual_axis_type():
    from .._runtime.mesh import ManualAxisType

    return ManualAxisType


def input_places():
    from .._tracing.jit import input_places

    return input_places


def output_places():
    from .._tracing.jit import output_places

    return output_places


def shards():
    from .._sharding.parts import shards_of

    return shards_of


def global_shards():
    from .._sharding.parts import global_shards

    return global_shards


def sharding_of_type():
    from .._sharding.shardings import _of_type

    return _of_type


def single_device_sharding():
    from ..sharding import SingleDeviceSharding

    return SingleDeviceSharding


def prng_key():
    from ..dtypes import prng_key

    return prng_key


def narrowed():
    from .dtypes import narrowed

    return narrowed


def error_class():
    from .. import dtypes, errors

    def named(name):
        found = getattr(errors, name, None)
        return getattr(dtypes, name) if found is None else found

    return named


def structure_changes():
    from .differences import structure_changes

    return structure_changes


def tree_flatten_with_path():
    from ..tree_util import tree_flatten_with_path

    return tree_flatten_with_path


def keystr():
    from ..tree_util import keystr

    return keystr


def argument_names():
    from .._trees.flat import argument_names

    return argument_names


def check_compiler_options():
    from .._tracing.jit import check_compiler_options

    return check_compiler_options


def jvp_rules():
    from ..interpreters.ad import primitive_jvps

    return primitive_jvps


def transpose_rules():
    from ..interpreters.ad import primitive_transposes

    return primitive_transposes


def batching_rules():
    from ..interpreters.batching import primitive_batchers

    return primitive_batchers


def axis_batching_rules():
    from ..interpreters.batching import fancy_primitive_batchers

    return fancy_primitive_batchers


def symbolic_zero():
    from ..interpreters.ad import Zero

    return Zero


def undefined_primal():
    from ..interpreters.ad import UndefinedPrimal

    return UndefinedPrimal


def axis_data():
    from ..interpreters.batching import AxisData

    return AxisData


def shape_dtype_struct():
    from .._tracing.trace import ShapeDtypeStruct

    return ShapeDtypeStruct


def arg_info():
    from ..stages import ArgInfo

    return ArgInfo


def argument_mismatches():
    from ..stages import _mismatches

    return _mismatches


def call_jitted():
    from .._references.calls import call_jitted

    return call_jitted


def stage_jitted():
    from .._references.calls import stage_jitted

    return stage_jitted


def client_of():
    from .._runtime.devices import client_of

    return client_of


def memories_of():
    from .._runtime.devices import memories_of

    return memories_of


def left():
    from .tracebacks import left

    return left


def memory_of():
    from .._runtime.devices import memory_of

    return memory_of


_core.register_hooks(
    os.path.dirname(os.path.dirname(__file__)),  # as names of files begin: those of code objects are compared with it
    {
        loader.__name__: loader
        for loader in (
            getitem,
            holders,
            index_update_helper,
            transfer,
            symbolic_slice,
            numpy,
            lax,
            unpickled_key,
            mesh_of_devices,
            sharding_of_cuts,
            input_places,
            output_places,
            manual_axis_type,
            shards,
            global_shards,
            sharding_of_type,
            single_device_sharding,
            prng_key,
            narrowed,
            error_class,
            structure_changes,
            tree_flatten_with_path,
            keystr,
            argument_names,
            check_compiler_options,
            jvp_rules,
            transpose_rules,
            batching_rules,
            axis_batching_rules,
            symbolic_zero,
            undefined_primal,
            axis_data,
            shape_dtype_struct,
            arg_info,
            argument_mismatches,
            call_jitted,
            client_of,
            left,
            memories_of,
            memory_of,
            stage_jitted,
        )
    },
)
