"""Calls of compiled functions. A C compiler makes them here; the frame of the typed interface is written out, as no headers are at hand."""

import ctypes
import importlib
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

# what a filtered traceback adds to the message
NOTE = "\n-{20}\nFor simplicity, JAX has removed its internal frames"

F32 = np.float32
needs_a_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
pytestmark = needs_a_compiler

PLAIN = r"""
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void triple(void* out, const void** in) { for (int i = 0; i < 4; i++) ((float*)out)[i] = 3 * ((const float*)in[0])[i]; }
void two(void* out, const void** in) {
  for (int i = 0; i < 4; i++) { ((float**)out)[0][i] = ((const float*)in[0])[i] + ((const float*)in[1])[i]; ((int32_t**)out)[1][i] = i; }
}
void opaque(void* out, const void** in, const char* text, size_t n, void* status) {
  for (int i = 0; i < 4; i++) ((float*)out)[i] = ((const float*)in[0])[i] + n + (n ? text[0] : 0);
}

/* The typed interface: what a handler reads of it. */
typedef struct { size_t size; void* next; int dtype; void* data; int64_t rank; int64_t* dims; } Buffer;
typedef struct { size_t size; void* next; int64_t n; int* types; void** items; } Args;
typedef struct { const char* ptr; size_t len; } Span;
typedef struct { int dtype; void* value; } Scalar;
typedef struct { int dtype; size_t size; void* data; } Array;
typedef struct { size_t size; void* next; int64_t n; int* types; Span** names; void** items; } Attrs;
typedef struct { size_t size; void* next; const char* message; int code; } Create;
typedef struct { size_t size; void* next; void* ctx; int stage; int64_t* type; void* state; } State;
typedef struct { size_t size; void* next; void* ctx; size_t bytes; size_t alignment; void* data; } Allocate;
typedef void* Function(void*);
typedef struct { size_t size; void* next; struct { size_t size; void* next; int major, minor; } version; void* internal; Function* f[18]; } Api;
typedef struct { size_t size; void* next; const Api* api; void* ctx; int stage; Args args, rets; Attrs attrs; void* future; } Frame;

static void* failed(Frame* f, const char* why) { Create c = {sizeof c, 0, why, 3}; return f->api->f[0](&c); }
static void* find(Frame* f, const char* name, int type) {
  for (int64_t i = 0; i < f->attrs.n; i++)
    if (f->attrs.names[i]->len == strlen(name) && !memcmp(f->attrs.names[i]->ptr, name, strlen(name)) && f->attrs.types[i] == type) return f->attrs.items[i];
  return 0;
}

/* Rows times `scale` plus the array `shift`; the second result is the shape of its own buffer, and the kind of its elements. */
void* rows(Frame* f) {
  if (f->api->version.major != 0 || f->args.n != 1 || f->rets.n != 2) return failed(f, "not called as promised");
  Scalar* scale = find(f, "scale", 3);
  Array* shift = find(f, "shift", 1);
  Span* name = find(f, "name", 4);
  if (!scale || !shift || scale->dtype != 11) return failed(f, "attributes are missing");
  if (name && name->len == 3 && !memcmp(name->ptr, "bad", 3)) return failed(f, "a bad name");
  Buffer *x = f->args.items[0], *y = f->rets.items[0], *seen = f->rets.items[1];
  int64_t n = 1;
  for (int64_t k = 0; k < x->rank; k++) n *= x->dims[k];
  for (int64_t i = 0; i < n; i++) ((float*)y->data)[i] = ((float*)x->data)[i] * *(float*)scale->value + ((float*)shift->data)[i % shift->size];
  int64_t each = 1, m = 1;
  for (int64_t k = 0; k < seen->rank; k++) m *= seen->dims[k];
  for (int64_t i = 0; i < m; i++) ((int32_t*)seen->data)[i] = i % 4 == 0 ? x->rank : i % 4 == 1 ? x->dims[0] : i % 4 == 2 ? x->dims[x->rank - 1] : x->dtype;
  return 0;
}

/* A state that is made once for each set of attributes, and memory that is asked for. */
void* make(Frame* f) {
  static int made = 0;
  static int64_t type = 0, kept[64];
  State s = {sizeof s, 0, f->ctx, 0, &type, &kept[made]};
  kept[made] = ++made;
  return f->api->f[7](&s);
}
void* count(Frame* f) {
  static int64_t type = 0;
  State s = {sizeof s, 0, f->ctx, 0, &type, 0};
  void* e = f->api->f[8](&s);
  if (e) return e;
  Allocate a = {sizeof a, 0, f->ctx, 100, 64, 0};
  e = f->api->f[9](&a);
  if (e) return e;
  memset(a.data, 1, 100);
  ((int32_t*)((Buffer*)f->rets.items[0])->data)[0] = *(int64_t*)s.state * 1000 + (((uintptr_t)a.data % 64) ? 1 : 0);
  return 0;
}
"""


@pytest.fixture(scope="module")
def ffi(jax, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "f.c").write_text(PLAIN)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "f.so", folder / "f.c"], check=True)
    library = ctypes.CDLL(str(folder / "f.so"))
    ffi = importlib.import_module(f"{jax.__name__}.ffi")
    for name in ("triple", "two", "opaque"):
        ffi.register_ffi_target(f"test_{name}", ffi.pycapsule(getattr(library, name)), platform="cpu", api_version=0)
    if jax.__name__ != "jax":  # JAX asks a handler for its version first
        ffi.register_ffi_target("test_rows", ffi.pycapsule(library.rows))
        ffi.register_ffi_target("test_count", {"instantiate": ffi.pycapsule(library.make), "execute": ffi.pycapsule(library.count)})
    return ffi


def shapes(jax, *given):
    return tuple(jax.ShapeDtypeStruct(s, d) for s, d in given)


def test_functions_of_pointers(jax, jnp, ffi):
    x = jnp.arange(4.0)
    (out,) = shapes(jax, ((4,), F32))
    f = ffi.ffi_call("test_triple", out, custom_call_api_version=1)
    for g in (f, jax.jit(f), jax.jit(lambda x: f(x) + 0)):
        assert g(x).tolist() == [0, 3, 6, 9]
    g = ffi.ffi_call("test_two", shapes(jax, ((4,), F32), ((4,), np.int32)), custom_call_api_version=1)
    assert [y.tolist() for y in jax.jit(g)(x, 2 * x)] == [[0, 3, 6, 9], [0, 1, 2, 3]]
    assert isinstance(g(x, x), tuple)


@pytest.mark.ours
def test_an_opaque_string(jax, jnp, ffi):
    (out,) = shapes(jax, ((4,), F32))
    f = ffi.ffi_call("test_opaque", out, custom_call_api_version=2, legacy_backend_config="ab")
    assert f(jnp.arange(4.0)).tolist() == [2 + 97 + k for k in range(4)]


def test_a_batch_of_functions_of_pointers(jax, jnp, ffi):
    (out,) = shapes(jax, ((4,), F32))
    x = jnp.arange(12.0).reshape(3, 4)
    for method in ("sequential", "sequential_unrolled"):
        f = ffi.ffi_call("test_triple", out, custom_call_api_version=1, vmap_method=method)
        assert np.array_equal(jax.vmap(f)(x), 3 * x)
        assert np.array_equal(jax.jit(jax.vmap(f, in_axes=1, out_axes=1))(x.T), 3 * x.T)
    assert jax.lax.map(ffi.ffi_call("test_triple", out, custom_call_api_version=1), x).tolist() == (3 * x).tolist()


ROWS = {"scale": F32(2), "shift": np.array([1, 2, 3], F32)}


def rows(jax, ffi, x, **options):
    attributes = options.pop("attributes", ROWS)
    return ffi.ffi_call("test_rows", shapes(jax, (x.shape, F32), ((4,), np.int32)), **options)(x, **attributes)


@pytest.mark.ours
def test_a_typed_handler(jax, jnp, ffi):
    x = jnp.arange(6.0).reshape(2, 3)
    for f in (rows, lambda *a: jax.jit(lambda x: rows(jax, ffi, x))(x)):
        y, seen = f(jax, ffi, x)
        assert y.tolist() == [[1, 4, 7], [7, 10, 13]]
        assert seen.tolist() == [2, 2, 3, 11]


@pytest.mark.ours
@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"])
def test_a_batch_of_a_typed_handler(jax, jnp, ffi, method):
    x = jnp.arange(24.0).reshape(4, 2, 3)
    y, seen = jax.vmap(lambda x: rows(jax, ffi, x, vmap_method=method))(x)
    assert np.array_equal(y, 2 * x + ROWS["shift"])
    assert np.asarray(seen)[0].tolist() == ([2, 2, 3, 11] if method.startswith("sequential") else [3, 4, 3, 11])
    with pytest.raises(NotImplementedError, match="vmap is only supported"):
        jax.vmap(lambda x: rows(jax, ffi, x))(x)


@pytest.mark.ours
def test_the_order_of_axes(jax, jnp, ffi):
    x = jnp.arange(6.0).reshape(2, 3)
    y, seen = rows(jax, ffi, x, input_layouts=[(1, 0)], output_layouts=[(1, 0), None])
    flat = 2 * np.asarray(x).T.ravel() + np.tile(ROWS["shift"], 2)
    assert np.array_equal(y, flat.reshape(3, 2).T)
    assert seen.tolist() == [2, 2, 3, 11]
    with pytest.raises(ValueError, match="a permutation of its 2 axes"):
        rows(jax, ffi, x, input_layouts=[(0, 0)])


@pytest.mark.ours
def test_aliases(jax, jnp, ffi):
    x = jnp.arange(6.0).reshape(2, 3)
    y, _ = rows(jax, ffi, x, input_output_aliases={0: 0})
    assert y.tolist() == [[1, 4, 7], [7, 10, 13]]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]], "the operand is as it was"


@pytest.mark.ours
def test_what_a_handler_reports(jax, jnp, ffi):
    x = jnp.ones((2, 3))
    for f in (lambda f: f(), lambda f: jax.jit(f)()):
        with pytest.raises(jax.errors.JaxRuntimeError, match=rf"^INVALID_ARGUMENT: a bad name({NOTE}|$)"):
            jax.block_until_ready(f(lambda: rows(jax, ffi, x, attributes={**ROWS, "name": "bad"})))
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: attributes are missing"):
        jax.block_until_ready(rows(jax, ffi, x, attributes={"scale": 2.0}))


@pytest.mark.ours
def test_a_state(jax, ffi):
    (out,) = shapes(jax, ((1,), np.int32))
    call = lambda k: int(ffi.ffi_call("test_count", out, has_side_effect=True)(k=k)[0])
    first, second = call(1), call(2)
    assert first != second
    assert [call(1), call(2), call(1)] == [first, second, first]
    assert first % 1000 == 0, "memory is where it was asked for"


def test_there_is_no_derivative(jax, jnp, ffi):
    (out,) = shapes(jax, ((4,), F32))
    f = ffi.ffi_call("test_triple", out, custom_call_api_version=1)
    for g in (lambda: jax.grad(lambda x: f(x).sum())(jnp.ones(4)), lambda: jax.jvp(f, (jnp.ones(4),), (jnp.ones(4),))):
        with pytest.raises(ValueError, match="The FFI call to `test_triple` cannot be differentiated"):
            g()


def test_an_unknown_function(jax, ffi):
    (out,) = shapes(jax, ((4,), F32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="NOT_FOUND: No FFI handler registered for no_such"):
        jax.block_until_ready(ffi.ffi_call("no_such", out)(np.ones(4, F32)))


WRONG = {
    "method": (dict(vmap_method="x"), "vmap_method must be on of the allowed methods"),
    "config": (dict(legacy_backend_config="x"), "requires custom_call_api_version < 4; got 4"),
    "input": (dict(input_output_aliases={1: 0}), r"with input index 1 outside the range \[0, 1\)"),
    "output": (dict(input_output_aliases={0: 1}), r"with output index 1 outside the range \[0, 1\)"),
    "types": (dict(input_output_aliases={0: 0}), "an output with a different abstract value"),
    "layouts": (dict(input_layouts=[None, None]), "The number of input arguments"),
}


@pytest.mark.parametrize("name", WRONG)
def test_unsupported_arguments(jax, ffi, name):
    options, says = WRONG[name]
    (out,) = shapes(jax, ((4,), F32))
    with pytest.raises(ValueError, match=says):
        ffi.ffi_call("test_triple", out, **options)(np.ones(3, F32))


def test_results_have_a_shape(ffi):
    with pytest.raises(ValueError, match="All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got 3 at position 0"):
        ffi.ffi_call("x", 3)


@pytest.mark.ours
def test_registering(jax, ffi):
    with pytest.raises(TypeError, match="is a PyCapsule"):
        ffi.register_ffi_target("x", 3)
    with pytest.raises(ValueError, match="api_version is 1"):
        ffi.register_ffi_target("x", ffi.pycapsule(0xFF), api_version=7)
    with pytest.raises(NotImplementedError, match="lower_fun"):
        ffi.ffi_lowering("x")
    with pytest.raises(RuntimeError, match="no headers of its own") if not _has_headers() else _nothing():
        ffi.include_dir()


def _has_headers():
    spec = importlib.util.find_spec("jaxlib")
    return spec is not None and spec.origin is not None and (pathlib.Path(spec.origin).parent / "include").is_dir()


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False
