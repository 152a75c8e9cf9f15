"""No option is dropped in silence: each is obeyed, or refused with an error that says why, or (where obeying it would change nothing but speed) warned of once.

What can be proved of all functions is proved of all: a parameter of any function of the package that nothing reads, or that is read only to refuse it or
to warn of it, must stand in one of the tables below, and the tables are proved by calling. A new parameter without effect fails
`test_every_parameter_without_effect_is_classified` until somebody says what becomes of it.
"""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import pytest

pytestmark = pytest.mark.ours

# ---------------------------------------------------------------- what has no effect

GUARDS = {"inert", "refused", "no_sharding"}


def functions(body, prefix=""):
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list):
            yield prefix + node.name, node


def is_guard(statement):
    """`if option: refused(...)`"""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    ends = lambda s: isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name) and s.value.func.id in GUARDS
    return all(map(ends, statement.body))


def loads(nodes):
    return [n.id for top in nodes for n in ast.walk(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]


def without_effect(function):
    """The parameters that nothing reads, or only a guard does; none of a function that does nothing but refuse."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(body) == 1 and isinstance(body[0], ast.Raise):
        return []
    a = function.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))]
    read = set(loads(s for s in function.body if not is_guard(s)))
    if any(isinstance(d, ast.Name) and d.id == "_family" for d in function.decorator_list):
        read |= {"loc", "scale"}  # applied by the decorator of scipy.stats
    return [n for n in names if n not in read and n not in ("self", "cls", "exc", "owner") and not n.startswith("_")]


def package(jax):
    return pathlib.Path(inspect.getfile(jax)).parent


def dropped(jax):
    """`numpy/_creation/filled.py:zeros:out_sharding`, ..."""
    for path in sorted(package(jax).rglob("*.py")):
        for name, node in functions(ast.parse(path.read_text()).body):
            for parameter in without_effect(node):
                yield f"{path.relative_to(package(jax)).as_posix()}:{name}", parameter


# Not options: parameters that a protocol passes and this one of its functions has no use for.
PROTOCOL = {
    ("numpy/_support/namespace_info.py:ArrayNamespaceInfo.dtypes", "device"),  # all devices have them
    ("numpy/_support/namespace_info.py:ArrayNamespaceInfo.default_dtypes", "device"),
    ("scipy/stats/_kde.py:gaussian_kde.tree_unflatten", "aux_data"),  # nodes without metadata
    ("_base/flags.py:_device", "name"),
    ("progress.py:_Bar.update", "n"),  # a protocol
    ("_sharding/shardings.py:Sharding.check_compatible_aval", "aval_shape"),  # an array of any shape lies on one device
    ("custom_derivatives.py:custom_vjp.defvjp", "optimize_remat"),  # residuals that are not used are not computed, whatever it says
    ("_trees/proto.py:deserialize", "registry"),  # there is one
    *{  # MPI has its own ways to find processes and to end
        ("distributed.py:initialize", p)
        for p in (
            "coordinator_address",
            "coordinator_bind_address",
            "slice_index",
            "partition_index",
        )
    },
    ("experimental/jet.py:zero_prop", "series_in"),  # a derivative that is zero
    ("experimental/ode.py:ravel_first_arg", "debug_info"),
    *{("experimental/checkify/_equations.py:" + f, "outs") for f in ("_index_check", "_division_check", "_user_check")},
    ("experimental/checkify/_equations.py:_division_check", "eqn"),
    ("experimental/checkify/_equations.py:_nan_check", "xs"),
    ("debug.py:_Placeholder.__format__", "spec"),
    ("debug.py:_Placeholder.__getattr__", "name"),
    ("debug.py:_Placeholder.__getitem__", "key"),
    ("nn/initializers.py:Initializer.__call__", "key"),
    ("nn/initializers.py:Initializer.__call__", "shape"),
    ("nn/initializers.py:Initializer.__call__", "dtype"),
    ("nn/initializers.py:Initializer.__call__", "out_sharding"),
    *{("nn/initializers.py:_Scaled.__call__", p) for p in ("in_axis", "out_axis", "batch_axis", "dtype")},
    ("nn/initializers.py:zeros", "key"),
    ("nn/initializers.py:ones", "key"),
    ("numpy/_support/scalar_types.py:iinfo.__init__", "int_type"),  # read by __new__
    ("numpy/_functional/ufuncs.py:ufunc.__init__", "nargs"),  # worked out from nin and nout
    ("_trees/flat.py:_NoReferences.thread_references", "threaded"),  # without references nothing is threaded
    *{("compat/__init__.py:_Finder.find_spec", p) for p in ("path", "target")},
    ("compat/__init__.py:_Loader.create_module", "spec"),
    ("compat/_src/interpreters/batching.py:is_vmappable", "x"),  # no type has rules for vmap
    *{("api_util.py:flatten_axes", p) for p in ("kws", "tupled_args")},  # the structure says it
    ("compat/_src/array.py:reconstruct_array", "type_"),  # the array's own says it
    *{("compat/_src/compiler.py:backend_compile_and_load", p) for p in ("backend", "args", "kwargs")},  # what stands in its place reads them
    *{("experimental/sparse/_base.py:JAXSparse." + f, p) for f, p in (("transpose", "axes"), ("tree_unflatten", "aux_data"), ("tree_unflatten", "children"))},
    *{  # a rule is given the equation and its parameters
        (f"experimental/sparse/_rules.py:_{f}", "eqn")
        for f in "concatenate conv div dot dynamic_slice gather mul reduce_sum rev select slice split squeeze tile transpose unstack".split()
    },
    *{(f"experimental/sparse/_rules.py:_{f}", "params") for f in ("add", "div", "mul", "select", "sub")},
    *{("extend/core/_equations.py:AbstractToken.str_short", p) for p in ("short_dtypes", "mesh_axis_types")},
    ("extend/core/__init__.py:call_impl", "params"),  # of the call that a program holds, not of its function
    ("extend/core/__init__.py:get_opaque_trace_state", "convention"),  # who asks makes no difference
    *{("experimental/sparse/_slicing.py:bcoo_gather", p) for p in ("indices_are_sorted", "unique_indices")},  # promises that speed nothing up
    ("experimental/sparse/_spsolve.py:spsolve", "tol"),  # the factorization is exact
    ("experimental/sparse/transform.py:sparsify", "use_tracer"),  # both ways give the same
    *{("_export/symbolic.py:SizeExpr.__deepcopy__", "memo"), ("_export/traced_sizes.py:TracedSize.__deepcopy__", "memo")},  # they do not change
    ("_export/traced_sizes.py:SymbolicAval.str_short", "short_dtypes"),
    ("export.py:Exported.mlir_module", "serialized"),  # text both ways
    ("_base/refused.py:Refused.__getitem__", "item"),
    # parameters of hardware and its compilers: a kernel is a program here
    *{("experimental/pallas/_call.py:pallas_call", p) for p in ("debug", "interpret", "compiler_params", "cost_estimate", "metadata")},
    *{("experimental/pallas/_references.py:load", p) for p in ("cache_modifier", "eviction_policy", "volatile")},
    ("experimental/pallas/_references.py:store", "eviction_policy"),
    *{
        (f"experimental/pallas/_inside.py:{f}", p)
        for f, p in (
            ("run_scoped", "collective_axes"),
            ("multiple_of", "values"),
            ("reciprocal", "approx"),
            ("delay", "nanos"),
            ("pallas_export_experimental", "dynamic_shapes"),
        )
    },
    *{
        (f"experimental/pallas/tpu.py:{f}", p)
        for f, p in (
            ("_Copy.start", "priority"),
            ("touch", "ref"),
            ("with_memory_space_constraint", "memory_space"),
            ("force_tpu_interpret_mode", "params"),
            ("set_tpu_interpret_mode", "params"),
        )
    },
    ("experimental/pallas/triton.py:max_contiguous", "values"),
    # internals and modules of JAX's: what tells another compiler, a mesh of machines, or a report that is not made
    *{
        ("compat/_src/" + f, p)
        for f, p in (
            ("lax/utils.py:standard_primitive", "sharding_rule"),
            ("lax/utils.py:standard_primitive", "vma_rule"),
            ("deprecations.py:warn", "deprecation_id"),
            ("api.py:jacfwd_unravel", "output_pytree_leaf"),
            ("api.py:jacrev_unravel", "input_pytree_leaf"),
        )
    },
    *{
        (f"compat/_src/core.py:{f}", p)
        for f, p in (("concrete_dim_or_error", "context"), ("jaxpr_const_args", "jaxpr"), ("extend_axis_env_nd", "more"), ("ensure_no_leaks", "trace"))
    },
    *{(f"compat/_src/dtypes.py:{f}", p) for f, p in (("scalar_type_to_dtype", "value"), ("check_user_dtype_supported", "fun_name"))},
    ("compat/_src/numpy/util.py:promote_shapes", "fun_name"),
    *{  # the answers of classes that derived ones replace
        ("compat/_src/hijax/" + f, p)
        for f, p in (
            ("types.py:HiPrimitive.is_effectful", "params"),
            ("types.py:HiPrimitive.is_high", "avals"),
            ("types.py:HiPrimitive.is_high", "params"),
            ("primitives.py:NullAccum.accum", "x"),
            ("primitives.py:VJPHiPrimitive.check", "arg_tys"),
            ("primitives.py:VmapOf.batch_dim_rule", "axis_data"),
            ("primitives.py:VmapOf.batch_dim_rule", "dims"),
        )
    },
    *{  # values are compared with any object, and caches are not looked at
        (f"compat/_src/test_util.py:{f}", p)
        for f, p in (
            ("_Assertions._CheckAgainstNumpy", "canonicalize_dtypes"),
            ("_Assertions._CompileAndCheck", "check_cache_misses"),
            ("_Assertions.assertAllClose", "canonicalize_dtypes"),
            ("_Assertions.assertArraysEqual", "allow_object_dtype"),
            ("create_mesh", "iota_order"),
        )
    },
    ("compat/_src/config.py:enum_state", "enum_values"),
    *{(f"compat/_src/util.py:{f}", p) for f, p in (("use_cpp_class", "cpp_cls"), ("use_cpp_method", "is_enabled"))},
    *{
        ("experimental/custom_partitioning.py:custom_partitioning.def_partition", p)
        for p in ("decode_shardings", "reduction_factors", "need_replication_factors", "permutation_factors", "factor_sizes")
    },
    # what managers that are derived implement
    *{
        (f"experimental/array_serialization/serialization.py:GlobalAsyncCheckpointManagerBase.{f}", p)
        for f, ps in (
            ("serialize", ("arrays", "tensorstore_specs", "on_commit_callback")),
            ("deserialize", ("shardings", "tensorstore_specs", "global_shapes", "dtypes")),
        )
        for p in ps
    },
    *{("experimental/mesh_utils.py:create_hybrid_device_mesh", p) for p in ("process_is_granule", "should_sort_granules_by_key")},
    ("experimental/rnn.py:lstm", "precision"),  # refused
    *{("experimental/rnn.py:lstm_ref", p) for p in ("input_size", "hidden_size")},  # the shapes of the weights say them
    ("experimental/xla_metadata.py:set_xla_metadata", "kwargs"),
    *{("extend/backend.py:register_backend_cache", p) for p in ("name", "util")},
    ("extend/backend.py:backend_xla_version", "platform"),
    *{("extend/source_info_util.py:user_context", p) for p in ("tb", "name_stack")},
    *{("interpreters/ad.py:jvp", p) for p in ("instantiate", "transform_stack")},
    *{("profiler.py:register_subprocess", p) for p in ("pid", "port")},
    ("ffi.py:register_ffi_target", "kwargs"),  # traits of handlers; a call runs to its end
}
ONES = np.ones(3, np.float32)

# An option that is accepted: a call that sets it. It warns the first time and not the second, and its result is as without it.
INERT = {
    ("core.py:eval_jaxpr", "propagate_source_info"): lambda jax, **k: _eval(jax, **{"propagate_source_info": False} if k else {}),
    ("debug.py:callback", "partitioned"): lambda jax, **k: jax.debug.callback(len, ONES, **{"partitioned": True} if k else {}),
    ("debug.py:print", "partitioned"): lambda jax, **k: jax.debug.print("", **{"partitioned": True} if k else {}),
    ("lax/_control_flow.py:cond", "linear"): lambda jax, **k: jax.lax.cond(True, lambda x: x, lambda x: -x, ONES, **{"linear": (False,)} if k else {}),
    ("lax/_differentiation.py:composite", "version"): lambda jax, **k: jax.lax.composite(lambda x: x + 1, "f", **{"version": 2} if k else {})(ONES),
    ("nn/_scaled.py:scaled_dot_general", "implementation"): lambda jax, **k: jax.nn.scaled_dot_general(
        ONES, ONES, (((0,), (0,)), ((), ())), **{"implementation": "cudnn"} if k else {}
    ),
    ("numpy/_sorting/sets.py:unique", "sorted"): lambda jax, **k: jax.numpy.unique(ONES, **{"sorted": False} if k else {}),
    ("numpy/_sorting/sets.py:isin", "assume_unique"): lambda jax, **k: jax.numpy.isin(ONES, ONES, **{"assume_unique": True} if k else {}),
    ("numpy/_reductions/histograms.py:histogram_bin_edges", "weights"): lambda jax, **k: jax.numpy.histogram_bin_edges(ONES, **{"weights": ONES} if k else {}),
    ("numpy/_math/floating_point.py:nan_to_num", "copy"): lambda jax, **k: jax.numpy.nan_to_num(ONES, **{"copy": False} if k else {}),
    ("debug.py:breakpoint", "filter_frames"): lambda jax, **k: _stopped(jax, **{"filter_frames": False} if k else {}),
    ("debug.py:breakpoint", "num_frames"): lambda jax, **k: _stopped(jax, **{"num_frames": 2} if k else {}),
    ("debug.py:breakpoint", "token"): lambda jax, **k: _stopped(jax, **{"token": 1} if k else {}),
    ("debug.py:visualize_sharding", "use_color"): lambda jax, **k: jax.debug.visualize_array_sharding(ONES, **{"use_color": False} if k else {}),
    ("debug.py:visualize_sharding", "color_map"): lambda jax, **k: jax.debug.visualize_array_sharding(ONES, **{"color_map": len} if k else {}),
    ("profiler.py:start_trace", "create_perfetto_trace"): lambda jax, **k: _profiled(jax, **{"create_perfetto_trace": True} if k else {}),
    ("profiler.py:start_trace", "profiler_options"): lambda jax, **k: _profiled(jax, **{"profiler_options": jax.profiler.ProfileOptions()} if k else {}),
}


# `out_sharding` in the tests of types that say how arrays lie, the others in those of indexing and of creation.
PROVED_ELSEWHERE = {"out_sharding", "wrap_negative_indices", "args"}
# scipy's: each saves a copy, or a check that raises, and here there is neither. Programs set them everywhere; JAX, too, takes them in silence.
PROVED_ELSEWHERE |= {"overwrite_a", "overwrite_b", "overwrite_c", "check_finite", "turbo", "lwork", "lapack_driver", "debug"}


def _stopped(jax, **options):
    hook, sys.breakpointhook = sys.breakpointhook, lambda: None
    try:
        jax.debug.breakpoint(**options)
        jax.effects_barrier()
    finally:
        sys.breakpointhook = hook


def _profiled(jax, **options):
    with tempfile.TemporaryDirectory() as place, jax.profiler.trace(place, **options):
        pass


def _eval(jax, **options):
    program = jax.make_jaxpr(lambda x: x + 1)(ONES)
    return jax.core.eval_jaxpr(program.jaxpr, program.consts, ONES, **options)[0]


def _sparse(jax):
    return importlib.import_module(f"{jax.__name__}.experimental.sparse")


# An option that is refused: a call that sets it raises NotImplementedError and says which option and why.
REFUSED = {
    ("numpy/_support/array_methods.py:_compress", "out"): lambda jax: jax.numpy.ones(2).compress(np.ones(2, bool), out=np.ones(2)),
    ("numpy/_support/array_methods.py:_to_device", "stream"): lambda jax: jax.numpy.ones(2).to_device(jax.devices()[0], stream=1),
    ("_transforms/grad.py:grad", "reduce_axes"): lambda jax: jax.grad(sum, reduce_axes=("i",)),
    ("_transforms/grad.py:value_and_grad", "reduce_axes"): lambda jax: jax.value_and_grad(sum, reduce_axes=("i",)),
    ("_transforms/linear.py:vjp", "reduce_axes"): lambda jax: jax.vjp(sum, ONES, reduce_axes=("i",)),
    ("_transforms/linear.py:linear_transpose", "reduce_axes"): lambda jax: jax.linear_transpose(sum, ONES, reduce_axes=("i",)),
    ("_runtime/callback.py:pure_callback", "sharding"): lambda jax: jax.pure_callback(len, 1, ONES, sharding="x"),
    ("_runtime/callback.py:io_callback", "sharding"): lambda jax: importlib.import_module(f"{jax.__name__}.experimental").io_callback(
        len, 1, ONES, sharding="x"
    ),
    ("extend/core/__init__.py:unmapped_aval", "explicit_mesh_axis"): lambda jax: jax.extend.core.unmapped_aval(2, 0, jax.typeof(1.0), explicit_mesh_axis="x"),
    ("interpreters/batching.py:broadcast", "mesh_axis"): lambda jax: jax.interpreters.batching.broadcast(ONES, 2, 0, mesh_axis="x"),
    ("nn/_scaled.py:scaled_dot_general", "configs"): lambda jax: jax.nn.scaled_dot_general(ONES, ONES, (((0,), (0,)), ((), ())), configs=[None] * 3),
    ("debug.py:breakpoint", "backend"): lambda jax: jax.debug.breakpoint(backend="web"),
    ("profiler.py:start_trace", "create_perfetto_link"): lambda jax: jax.profiler.start_trace("/", create_perfetto_link=True),
    ("experimental/sparse/_shaping.py:bcoo_broadcast_in_dim", "sharding"): lambda jax: _sparse(jax).bcoo_broadcast_in_dim(
        _sparse(jax).BCOO.fromdense(ONES), shape=(2, 3), broadcast_dimensions=(1,), sharding=jax.devices()[0]
    ),
    ("experimental/sparse/_shaping.py:bcoo_reshape", "sharding"): lambda jax: _sparse(jax).bcoo_reshape(
        _sparse(jax).BCOO.fromdense(ONES), new_sizes=(3, 1), sharding=jax.devices()[0]
    ),
}


def test_every_parameter_without_effect_is_classified(jax):
    known = PROTOCOL | INERT.keys() | REFUSED.keys()
    found = set(dropped(jax))
    assert {(f, p) for f, p in found - known if p not in PROVED_ELSEWHERE} == set()
    assert known - found == set(), "no such parameter, or it has an effect now"


def test_guards_are_not_mistaken_for_use():
    def parameters(text):
        return without_effect(ast.parse(text).body[0])

    assert parameters("def f(x, y): return x") == ["y"]
    assert parameters("@_family\ndef f(x, a, loc=0, scale=1): return x") == ["a"]
    assert parameters("def f(x, y):\n  'no'\n  raise NotImplementedError") == []
    assert parameters("def f(x, y):\n  if y: refused('f', 'y', y, '')\n  return x") == ["y"]
    assert parameters("def f(x, y):\n  if y is not None:\n    inert('f', 'y', '')\n  return x") == ["y"]
    assert parameters("def f(x, y):\n  if y: x = x + 1\n  return x") == []
    assert parameters("def f(x, y=1, *a, **k): return x, y, a, k") == []


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: f"{c[0].split(':')[1]}-{c[1]}")
def test_refused(jax, case):
    with pytest.raises(NotImplementedError, match=case[1]):
        REFUSED[case](jax)


# ---------------------------------------------------------------- accepted


@pytest.mark.parametrize("case", INERT, ids=lambda c: f"{c[0].split(':')[1]}-{c[1]}")
def test_inert_options_warn_once_and_change_nothing(jax, case):
    flags = importlib.import_module(f"{jax.__name__}._base.flags")
    flags._warned.clear()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        plain = INERT[case](jax)
        assert not seen
        once = INERT[case](jax, set=True)
        assert [case[1] in str(w.message) and "has no effect" in str(w.message) for w in seen] == [True]
        INERT[case](jax, set=True)
        assert len(seen) == 1
    assert once is plain is None or np.array_equal(once, plain)


# ---------------------------------------------------------------- jit's own: all parameters, each by a call whose outcome differs


def two_places(jax):
    d = jax.devices()[0]
    return jax.sharding.SingleDeviceSharding(d), d


def traces_of(jax, **options):
    """How often calls with (1., 2) and (1., 3) trace a function, and what becomes of an argument."""
    traces = []
    x = jax.numpy.ones(3)
    f = jax.jit(lambda x, n: (traces.append(1), x * 2)[1], **options)
    f(x, 2)
    if not x.is_deleted():
        f(x, 3)
    return len(traces), x.is_deleted()


def fails(call):
    try:
        call()
    except Exception as e:
        return type(e).__name__
    return None


JIT = {
    "static_argnums": lambda jax: (traces_of(jax), traces_of(jax, static_argnums=1)),
    "static_argnames": lambda jax: (traces_of(jax), traces_of(jax, static_argnames="n")),
    "donate_argnums": lambda jax: (traces_of(jax), traces_of(jax, donate_argnums=0)),
    "donate_argnames": lambda jax: (traces_of(jax), traces_of(jax, donate_argnames="x")),
    "keep_unused": lambda jax: tuple(str(jax.make_jaxpr(lambda x: jax.jit(lambda x, y: x, keep_unused=k)(x, x))(1.0)) for k in (False, True)),
    "inline": lambda jax: tuple(str(jax.make_jaxpr(jax.jit(lambda x: x + 1, inline=k))(1.0)) for k in (False, True)),
    "device": lambda jax: tuple(jax.jit(lambda x: x + 1, device=d)(1.0).committed for d in (None, jax.devices()[0])),
    "backend": lambda jax: tuple(jax.jit(lambda x: x + 1, backend=b)(1.0).committed for b in (None, "cpu")),
    "in_shardings": lambda jax: tuple(jax.jit(lambda x: x + 1, in_shardings=s)(1.0).committed for s in (None, two_places(jax)[0])),
    "out_shardings": lambda jax: tuple(jax.jit(lambda x: x + 1, out_shardings=s)(1.0).committed for s in (None, two_places(jax)[0])),
    "compiler_options": lambda jax: tuple(fails(lambda o=o: jax.jit(lambda x: x, compiler_options=o)(1.0)) for o in (None, {"no_such": 1})),
}


def test_all_options_of_jit_exist(jax):
    options = [p.name for p in inspect.signature(jax.jit).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert set(options) == set(JIT)


@pytest.mark.parametrize("name", JIT)
def test_jit_obeys(jax, name):
    without, with_ = JIT[name](jax)
    assert without != with_


# ---------------------------------------------------------------- methods of the extension


def lowered(jax):
    return jax.jit(lambda x: x + 1).lower(1.0)


def stamped(jax):
    def f(x):
        with jax.named_scope("stamp"):
            return x + 1

    return jax.make_jaxpr(f)(1.0)


NATIVE = {
    ("Lowered.as_text", "dialect"): lambda jax: (lowered(jax).as_text(), lowered(jax).as_text("plan")),
    ("Lowered.as_text", "debug_info"): lambda jax: (lowered(jax).as_text(), lowered(jax).as_text(debug_info=True)),
    ("Lowered.compiler_ir", "dialect"): lambda jax: (type(lowered(jax).compiler_ir()), type(lowered(jax).compiler_ir("plan"))),
    ("Lowered.compile", "compiler_options"): lambda jax: (None, fails(lambda: lowered(jax).compile(compiler_options={"no_such": 1}))),
    ("Lowered.compile", "device_assignment"): lambda jax: (None, fails(lambda: lowered(jax).compile(device_assignment=[1, 2]))),
    ("Traced.lower", "lowering_platforms"): lambda jax: (None, fails(lambda: jax.jit(lambda x: x).trace(1.0).lower(lowering_platforms=("no such",)))),
    ("ClosedJaxpr.pretty_print", "source_info"): lambda jax: (stamped(jax).pretty_print(), stamped(jax).pretty_print(source_info=True)),
    ("ClosedJaxpr.pretty_print", "name_stack"): lambda jax: (stamped(jax).pretty_print(), stamped(jax).pretty_print(name_stack=True)),
    **{
        ("ClosedJaxpr.pretty_print", option): lambda jax, option=option: (
            None,
            fails(lambda: stamped(jax).pretty_print(**{option: option[:5] not in ("print", "custo") or option == "print_effects"})),
        )
        for option in ("print_shapes", "custom_pp_eqn_rules", "print_effects", "use_color")
    },
    ("ClosedJaxpr.replace", "jaxpr"): lambda jax: (str(stamped(jax)), str(stamped(jax).replace(jaxpr=jax.make_jaxpr(lambda x: x)(1.0).jaxpr))),
    ("ClosedJaxpr.replace", "consts"): lambda jax: (None, fails(lambda: stamped(jax).replace(consts=["no array"]))),
}


def test_all_options_of_stages_and_programs_exist(jax):
    core = importlib.import_module(f"{jax.__name__}._core")
    found = set()
    for name in ("Lowered", "Traced", "Compiled", "Executable", "ClosedJaxpr"):
        for method, f in vars(getattr(core, name)).items():
            if method.startswith("_") or not callable(f):
                continue
            for p in inspect.signature(f).parameters.values():
                if p.name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                    found.add((f"{name}.{method}", p.name))
    assert found == set(NATIVE)


@pytest.mark.parametrize("case", NATIVE, ids="-".join)
def test_stages_and_programs_obey(jax, case):
    without, with_ = NATIVE[case](jax)
    assert without != with_


# ---------------------------------------------------------------- what messages speak of

FOREIGN = re.compile(r"\bXLA\b|\bMLIR\b|\bHLO\b|StableHLO|(open|file) an issue|github\.com/(jax|google)")


def messages(root):
    """(place, text) of every string that is not a docstring."""
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text())
        doc = {
            id(n.body[0].value)
            for n in ast.walk(tree)
            if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef)) and n.body and isinstance(n.body[0], ast.Expr)
        }
        for n in ast.walk(tree):
            if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in doc:
                yield f"{path.name}:{n.lineno}", n.value
    for path in (pathlib.Path(__file__).parents[2] / "crates").glob("*/src/**/*.rs"):
        for i, line in enumerate(path.read_text().splitlines(), 1):
            if not line.lstrip().startswith("//"):
                yield from ((f"{path.name}:{i}", text) for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line))


def test_messages_name_this_library(jax):
    # One file repeats JAX's texts, for programs that expect them.
    assert [(place, text) for place, text in messages(package(jax)) if FOREIGN.search(text) and not place.startswith("_logs.py")] == []


def test_there_is_one_version(jax):
    root = pathlib.Path(__file__).parents[2]
    (version,) = re.findall(r'^version = "(.*)"', (root / "Cargo.toml").read_text(), re.M)
    assert jax.__version__ == version
    assert not re.findall(r"^version = ", (root / "pyproject.toml").read_text(), re.M)
