"""Arrays on disk by TensorStore (`jax.experimental.array_serialization`): formats, dtypes, shapes that grow, the manager and its errors."""

import asyncio
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.array_serialization import serialization, tensorstore_impl
from outcomes import Programs

FOLDER = pathlib.Path(tempfile.mkdtemp())
HERE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
ARRAYS = {
    "matrix": jnp.arange(24.0).reshape(8, 3),
    "empty": jnp.ones((2, 0)),
    "scalar": jnp.asarray(3.0, jnp.bfloat16),
    "bytes": jnp.arange(6, dtype="uint8"),
    "complex": jnp.array([1 + 2j, 3j]),
    "truth": jnp.array([True, False]),
    "half": jnp.linspace(0, 1, 5, dtype="float16"),
}


def relative(spec):
    return str(spec).replace(str(FOLDER), "FOLDER")


def programs(t):
    get, zarr3 = serialization.get_tensorstore_spec, tensorstore_impl.get_tensorstore_spec
    for name, x in ARRAYS.items():
        for kind, spec in {"zarr": get, "store": lambda p: zarr3(f"{p}.all/x")}.items():

            def there_and_back(x=x, spec=spec, place=FOLDER / f"{name} {kind}"):
                asyncio.run(tensorstore_impl.async_serialize(x, spec(place)))
                out = asyncio.run(tensorstore_impl.async_deserialize(HERE, spec(place)))
                return str(out.dtype), out.astype("complex64")

            t(f"{name} {kind}", there_and_back)

    def managed():
        manager, done = serialization.GlobalAsyncCheckpointManager(), []
        paths = [FOLDER / "managed" / name for name in ("a", "b")]
        manager.serialize_with_paths([jnp.arange(5), jnp.eye(2)], paths, on_commit_callback=lambda: done.append(1))
        manager.wait_until_finished()
        return (
            done,
            manager.deserialize_with_paths([HERE, HERE], paths),
            manager.deserialize_with_paths([HERE, HERE], paths, [(7,), (2, 1)], ["float32", "int8"]),
        )

    t("managed", managed)

    def failing():
        manager = serialization.GlobalAsyncCheckpointManager()

        def fails():
            raise KeyError("of the callback")

        manager.serialize_with_paths([jnp.arange(5)], [FOLDER / "failing"], on_commit_callback=fails)
        manager.wait_until_finished()

    t("failing", failing, raises=KeyError, why="the write of one array fails, and waiting for it says so")
    t("metadata", lambda: [part for part in relative(zarr3("/a/b/c", arr=ARRAYS["matrix"])).split()])
    t("bucket", lambda: relative(get("gs://bucket/a//b/")).split())
    t("process", lambda: relative(zarr3("/a/b", process_idx=2)).split())
    t("on disk", lambda: sorted(p.name for p in (FOLDER / "matrix zarr").iterdir()))
    t("not absolute", lambda: zarr3("a/b"), raises=ValueError, why="paths are absolute")
    t("no bucket", lambda: get("gs://bucket"), raises=ValueError, why="the address names a bucket but no file")
    t("not there", lambda: asyncio.run(tensorstore_impl.async_deserialize(HERE, get(FOLDER / "nothing"))), raises=ValueError, why="nothing is stored there")
    t(
        "no sharding",
        lambda: asyncio.run(tensorstore_impl.async_deserialize(None, get(FOLDER / "matrix zarr"))),
        raises=TypeError,
        why="a place for the array is needed",
    )
    t("remote", lambda: [serialization.is_remote_storage(x) for x in ("gs://x", "x", {"kvstore": {"driver": "s3"}}, zarr3("/a/b"))])
    t("merged", lambda: str(tensorstore_impl.merge_nested_ts_specs({"a": 1, "kvstore": {"b": 2}}, {"a": 3, "kvstore": {"c": 4}})).split())
    t(
        "struct",
        lambda: asyncio.run(tensorstore_impl.async_deserialize(jax.ShapeDtypeStruct((2,), np.float32, sharding=HERE), get(FOLDER / "bytes zarr"), (2,))),
    )


PROGRAMS = Programs(programs)


@pytest.mark.parametrize("name", PROGRAMS.cases())
def test_array_serialization(name):
    PROGRAMS.check(name)
