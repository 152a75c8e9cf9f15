"""Reading and writing arrays with TensorStore: each is a Zarr array, in its own files or in a
shared store.

    asyncio.run(async_serialize(x, get_tensorstore_spec("/tmp/a/x")))
    asyncio.run(async_deserialize(x.sharding, get_tensorstore_spec("/tmp/a/x")))

Files are as JAX writes them, and each library reads those of the other. Invariant: chunks divide
the part of one device, so that devices write different files.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import _core
from ..._base.layouts import Format
from ..._runtime.devices import process_count, process_index
from ..._sharding.parts import make_array_from_single_device_arrays
from ...dtypes import canonicalize_dtype
from ...sharding import Sharding

if TYPE_CHECKING:
    from ..._core import Array

__all__ = [
    "async_deserialize",
    "async_serialize",
    "estimate_read_memory_footprint",
    "get_tensorstore_spec",
    "is_tensorstore_spec_leaf",
    "merge_nested_ts_specs",
    "run_deserialization",
    "run_serialization",
]


class _Absent:
    """Replaces TensorStore if it is not installed: the modules can be imported, and any use raises
    an error that names the missing package.
    """

    def __getattr__(self, name):
        raise ModuleNotFoundError("arrays are written and read by TensorStore, which is not installed: pip install tensorstore", name="tensorstore")


try:
    import tensorstore as ts
except ModuleNotFoundError:
    ts, CONTEXT, CHUNKS = _Absent(), None, None
else:
    CONTEXT = ts.Context(
        {
            "file_io_concurrency": {"limit": 128},
            "cache_pool": {"total_bytes_limit": 10_000_000_000},
            "cache_pool#remote": {"total_bytes_limit": 10_000_000_000},
            "data_copy_concurrency": {"limit": 128},
        }
    )
    CHUNKS = ts.ChunkLayout(chunk=ts.ChunkLayout.Grid(elements=100_000_000))
FILE_BYTES = 2 * 1024**3
DRIVERS = {"gs": "gcs", "s3": "s3"}


class InFlight:
    """A limit on the bytes being read: a read waits until its bytes are free; one larger than the
    limit raises the limit.
    """

    def __init__(self, most: int) -> None:
        self._most = self._free = most
        self._changed = asyncio.Condition()

    async def wait_for_bytes(self, wanted):
        """Takes that many bytes, once they are free."""
        if wanted > self._most:
            self._free += wanted - self._most
            self._most = wanted
        async with self._changed:
            await self._changed.wait_for(lambda: self._free >= wanted)
            self._free -= wanted

    async def release_bytes(self, taken):
        """Gives them back."""
        async with self._changed:
            self._free += taken
            self._changed.notify_all()


def is_tensorstore_spec_leaf(leaf: Any) -> bool:
    """Whether a leaf of a tree is a specification, or None.

    Args:
        leaf: anything.

    Returns:
        bool.
    """
    return leaf is None or (isinstance(leaf, dict) and ("driver" in leaf or "kvstore" in leaf))


def merge_nested_ts_specs(dict1: dict[Any, Any], dict2: dict[Any, Any] | None) -> dict[Any, Any]:
    """Two specifications as one.

    Args:
        dict1: dict.
        dict2: dict, whose entries take precedence, or None.

    Returns:
        dict.
    """
    if dict2 is None:
        return dict1
    return dict1 | dict2 | {"kvstore": dict1.get("kvstore", {}) | dict2.get("kvstore", {})}


def _primes(n):
    found, p = [], 2
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return found + [n] * (n > 1)


def _chunk(local_shape, itemsize, most=FILE_BYTES):
    """A shape that divides a device's part, of at most a tenth more than `most` bytes where its
    factors allow it.
    """
    chunk = [max(n, 1) for n in local_shape]
    if math.prod(local_shape) == 0:
        return chunk
    size = math.prod(chunk) * itemsize
    factors = [_primes(n) for n in chunk]
    while size > 1.1 * most:
        axis = min((k for k, f in enumerate(factors) if len(f) > 1), key=lambda k: factors[k][0], default=None)
        if axis is None:
            break
        by = factors[axis].pop(0)
        chunk[axis] //= by
        size //= by
    return chunk


def metadata(arr: Any, driver: str = "zarr3") -> dict[str, Any]:
    """An array as Zarr describes it: its shape, its chunks, and its dtype where the format has it
    there.

    Raises:
        ValueError: the driver is not one of Zarr.
    """
    local = arr.sharding.shard_shape(arr.shape) if isinstance(arr, _core.Array) else arr.shape
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": arr.shape, "chunks": [max(n, 1) for n in local]}
    if driver != "zarr3":
        raise ValueError(f"Unsupported driver: {driver}")
    grid = {"name": "regular", "configuration": {"chunk_shape": _chunk(local, np.dtype(arr.dtype).itemsize)}}
    return {"codecs": [], "shape": arr.shape, "data_type": np.dtype(arr.dtype).name, "chunk_grid": grid}


def _store(path):
    """The key-value store of a path: a folder, or `gs://bucket/path`, `s3://bucket/path`."""
    scheme, found, rest = path.partition("://")
    if not found or scheme not in DRIVERS:
        return {"driver": "file", "path": path}
    bucket, slash, within = rest.partition("/")
    if not slash:
        raise ValueError(f"The ckpt_path should contain the bucket name and the file path inside the bucket. Got: {path}")
    return {"driver": DRIVERS[scheme], "bucket": bucket, "path": within}


def get_tensorstore_spec(ckpt_path: Any, ocdbt: bool = True, process_idx: int | None = None, arr: Array | None = None, driver: str = "zarr3") -> dict[str, Any]:
    """The specification of an array at a path.

    Args:
        ckpt_path: path, or `gs://..` and `s3://..`.
        ocdbt: bool; whether the array is a key in a key-value store in its parent folder; else the
          path is its own folder.
        process_idx: int, the process whose folder is used; None: the path itself.
        arr: an array to write, whose shape and dtype the specification gets.
        driver: "zarr3" or "zarr".

    Returns:
        dict.

    Raises:
        ValueError: the path is not absolute, or names no bucket.
    """
    path = re.sub(r"^(gs|s3):/", r"\1://", os.path.normpath(str(ckpt_path)))
    if process_idx is not None:
        parent, name = os.path.split(path)
        path = os.path.join(parent, f"process_{process_idx}", name)
    if ocdbt:
        folder, name = os.path.split(path)
        if not re.match("(gs|s3)://", folder) and not os.path.isabs(folder):
            raise ValueError(f"Checkpoint path should be absolute. Got {folder}")
        store = {"driver": "ocdbt", "base": _store(folder), "path": name}
    else:
        store = _store(path)
    return {"driver": driver, "kvstore": store} | ({} if arr is None else {"metadata": metadata(arr, driver)})


def _has_metadata(spec):
    return isinstance(spec, dict) and ("metadata" in spec or any(map(_has_metadata, spec.values())))


async def async_serialize(
    arr_inp, tensorstore_spec, commit_future=None, context=CONTEXT, chunk_layout=CHUNKS, primary_host=None, replica_id=0, transaction=None
):
    """Writes an array: each device's part, of the copies of a part one.

    Args:
        arr_inp: array.
        tensorstore_spec: dict; it gets the array's shape and dtype where it has none.
        commit_future: list that gets a future for each write; None: waits until all is written.
        context: `tensorstore.Context`.
        chunk_layout: `tensorstore.ChunkLayout`.
        primary_host: int, the process that makes the file; None: each.
        replica_id: int, which copy of a part is written.
        transaction: `tensorstore.Transaction`, or None.

    Returns:
        List with an entry for each part of this process.

    Raises:
        ValueError: of several processes, the array is this one's alone.
    """
    if isinstance(arr_inp, _core.Array) and process_count() > 1 and arr_inp.is_fully_addressable:
        raise ValueError(
            "Passing fully addressable arrays to a multiprocess serialization is not allowed, as this may lead to a race condition between processes. "
            f'Serialization have failed for the array with the path from kvstore: "{tensorstore_spec["kvstore"]}".'
        )
    if not _has_metadata(tensorstore_spec):
        tensorstore_spec["metadata"] = metadata(arr_inp, tensorstore_spec["driver"])
    if tensorstore_spec["driver"] == "zarr" and "dtype" not in tensorstore_spec:
        tensorstore_spec["dtype"] = np.dtype(arr_inp.dtype).name
    opened = functools.partial(ts.open, ts.Spec(tensorstore_spec), open=True, context=context, chunk_layout=chunk_layout, transaction=transaction)
    if primary_host is None or process_index() == primary_host:
        made = opened(create=True)
        if commit_future is None:
            await made
        else:
            commit_future.append(made)
    store = await opened(assume_metadata=True)

    async def write(shard):
        if shard.replica_id != replica_id:
            return
        written = store[shard.index].write(np.asarray(shard.data), can_reference_source_data_indefinitely=isinstance(arr_inp, _core.ArrayImpl))
        if commit_future is None:
            await written.commit
        else:
            commit_future.append(written.commit)
            await written.copy

    return await asyncio.gather(*map(write, arr_inp.addressable_shards))


def estimate_read_memory_footprint(t: Any, domain: Any) -> int:
    """How many bytes are read for a part of an array: those of all chunks that it touches.

    Args:
        t: `tensorstore.TensorStore`.
        domain: `tensorstore.IndexDomain` of the part; None: all of it.

    Returns:
        int.
    """
    domain = t.domain if domain is None else domain
    chunk = t.chunk_layout.read_chunk_template
    if not all(chunk[k].finite for k in range(t.rank)):
        return domain.size * t.dtype.numpy_dtype.itemsize
    count = t.dtype.numpy_dtype.itemsize
    for first, size, origin, step in zip(domain.origin, domain.shape, chunk.origin, chunk.shape, strict=True):
        count *= -(-(first + size - origin) // step) * step - (first - origin) // step * step
    return count


async def async_deserialize(
    in_type, tensorstore_spec, global_shape=None, dtype=None, byte_limiter=None, context=CONTEXT, chunk_layout=CHUNKS, assume_metadata=False
):
    """Reads an array: for each device of a sharding its part.

    Args:
        in_type: sharding, `Format`, or a `ShapeDtypeStruct` with a sharding.
        tensorstore_spec: dict or `tensorstore.Spec`.
        global_shape: tuple of ints: shape of the result, cut or filled with zeros at the end; None: the shape that is stored.
        dtype: dtype of the result; None: that which is stored.
        byte_limiter: object whose `wait_for_bytes` and `release_bytes` are awaited around each read; None: no limit.
        context: `tensorstore.Context`.
        chunk_layout: `tensorstore.ChunkLayout`.
        assume_metadata: bool; whether the specification says shape and dtype, and the store is not
          asked.

    Returns:
        Array of that sharding.

    Raises:
        TypeError: `in_type` names no sharding.
    """
    sharding = in_type if isinstance(in_type, Sharding) else getattr(in_type, "sharding", None)
    if not isinstance(sharding, Sharding):
        raise TypeError(f"sharding passed to deserialization should be specified, concrete and an instance of `jax.sharding.Sharding`. Got {in_type}")
    if dtype is None and not isinstance(in_type, (Sharding, Format)):
        dtype = in_type.dtype
    t = await ts.open(tensorstore_spec, open=True, assume_metadata=assume_metadata, context=context, chunk_layout=chunk_layout)
    shape = tuple(t.shape if global_shape is None else global_shape)
    dtype = t.dtype.numpy_dtype if dtype is None else dtype

    async def read(index, device):
        wanted = ts.IndexTransform(input_shape=shape)[index].domain
        there = t.domain.intersect(wanted)
        size = estimate_read_memory_footprint(t, there)
        if byte_limiter is not None:
            await byte_limiter.wait_for_bytes(size)
        out = np.zeros(sharding.shard_shape(shape), dtype=t.dtype.numpy_dtype)
        await ts.array(out)[ts.d[:].translate_to[wanted.origin]][there].write(t[there])
        part = _core.device_put(out.astype(dtype), device)
        if byte_limiter is not None:
            await byte_limiter.release_bytes(size)
        return part

    places = sharding.addressable_devices_indices_map(shape)
    parts = await asyncio.gather(*(read(index, device) for device, index in places.items()))
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=canonicalize_dtype(dtype))


def run_serialization(arrays: Sequence[Array], tensorstore_specs: Sequence[Any]) -> None:
    """Writes arrays.

    Args:
        arrays: sequence of arrays.
        tensorstore_specs: sequence of as many specifications.

    Returns:
        None, once all is written.
    """

    async def run():
        return await asyncio.gather(*map(async_serialize, arrays, tensorstore_specs))

    asyncio.run(run())


def run_deserialization(
    shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Any = None, dtypes: Any = None, concurrent_gb: int = 32
) -> list[Array]:
    """Reads arrays.

    Args:
        shardings: sequence of shardings.
        tensorstore_specs: sequence of as many specifications.
        global_shapes: sequence of shapes, or None.
        dtypes: sequence of dtypes, or None.
        concurrent_gb: int, how many gigabytes are read at a time.

    Returns:
        List of arrays.
    """

    async def run():
        read = functools.partial(async_deserialize, byte_limiter=InFlight(concurrent_gb * 10**9))
        each = lambda given: [None] * len(tensorstore_specs) if given is None else given
        return await asyncio.gather(*map(read, shardings, tensorstore_specs, each(global_shapes), each(dtypes)))

    return asyncio.run(run())


_run_serialization, _run_deserialization = run_serialization, run_deserialization
_get_tensorstore_metadata, _LimitInFlightBytes, _TS_CONTEXT = metadata, InFlight, CONTEXT
