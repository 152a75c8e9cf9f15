"""Asynchronous writing of arrays: `GlobalAsyncCheckpointManager`.

    manager = GlobalAsyncCheckpointManager()
    manager.serialize_with_paths([x], ["/tmp/a/x"])
    manager.wait_until_finished()
    x, = manager.deserialize_with_paths([x.sharding], ["/tmp/a/x"])

Invariant: `serialize` returns once the values are copied; later failures are raised by the next call.
"""

import abc
import asyncio
import functools
import logging
import re
import threading

from ..._devices import process_count
from .tensorstore_impl import (
    CONTEXT as TS_CONTEXT,
    async_deserialize,
    async_serialize,
    get_tensorstore_spec as _get_spec,
    run_deserialization,
    run_serialization,
)

__all__ = [
    "TS_CONTEXT",
    "AsyncManager",
    "BarrierTimeoutError",
    "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase",
    "async_deserialize",
    "async_serialize",
    "get_tensorstore_spec",
    "is_remote_storage",
    "run_deserialization",
    "run_serialization",
]

logger = logging.getLogger(__name__)


def get_tensorstore_spec(ckpt_path, ocdbt=False, process_idx=None, arr=None, driver="zarr"):
    """Like `tensorstore_impl.get_tensorstore_spec`, for the older format: each array in its own folder.

    Args:
        ckpt_path: str, path of the array.
        ocdbt: whether arrays share a store.
        process_idx: int or None.
        arr: array whose shape and dtype are written down, or None.
        driver: str.

    Returns:
        dict.
    """
    return _get_spec(ckpt_path, ocdbt=ocdbt, process_idx=process_idx, arr=arr, driver=driver)


class BarrierTimeoutError(Exception):
    """Processes did not meet in time."""


def is_remote_storage(tspec):
    """Whether a specification, or the URL of a store, names a bucket.

    Args:
        tspec: dict or str.

    Returns:
        bool.
    """
    if isinstance(tspec, str):
        return re.match("(gs|s3)://", tspec) is not None
    for key in ("base", "kvstore"):
        if key in tspec:
            return is_remote_storage(tspec[key])
    return tspec.get("driver") in ("gcs", "s3")


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of checkpoint managers: one checkpoint is written at a time, and the next one waits for it."""

    @abc.abstractmethod
    def check_for_errors(self):
        """Raises the failure of an earlier write, if any."""

    @abc.abstractmethod
    def wait_until_finished(self):
        """Waits until all is written."""

    @abc.abstractmethod
    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback):
        """Starts to write arrays."""

    @abc.abstractmethod
    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None):
        """Reads arrays."""


class AsyncManager:
    """Waits for writes in a separate thread.

    Args:
        timeout_secs: how long processes wait for each other.

    Raises:
        NotImplementedError: there are several processes.
    """

    def __init__(self, timeout_secs=300):
        if process_count() > 1:
            raise NotImplementedError("a checkpoint manager waits for the writes of one process here: use orbax.checkpoint, or flax.serialization")
        self._timeout_secs = timeout_secs
        self._commit_futures = self._thread = self._exception = self._on_commit_callback = None

    def __del__(self):
        if self._thread is not None and self._thread.is_alive():
            logger.warning("wait_until_finished() was not called: errors of the last checkpoint are lost")

    def _commit(self):
        try:
            for future in self._commit_futures:
                future.result()
            if self._on_commit_callback is not None:
                self._on_commit_callback()
        except Exception as e:  # raised by the next call
            self._exception = e

    def _start_async_commit(self, on_commit_callback):
        self._on_commit_callback = on_commit_callback
        self._thread = threading.Thread(target=self._commit)
        self._thread.start()

    def _add_futures(self, futures):
        self._commit_futures = futures

    def check_for_errors(self):
        """Raises the failure of an earlier write, if any."""
        failed, self._exception = self._exception, None
        if failed is not None:
            raise failed

    def wait_until_finished(self):
        """Waits until all arrays are written; raises failures."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays with TensorStore in the background."""

    def serialize(self, arrays, tensorstore_specs, *, on_commit_callback=None, transaction=None):
        """Starts to write arrays, after those of the previous call; returns when their values are copied.

        Args:
            arrays: sequence of arrays.
            tensorstore_specs: sequence of as many specifications.
            on_commit_callback: function without arguments, called when all is written; None: none.
            transaction: `tensorstore.Transaction`, or None.
        """
        self.wait_until_finished()
        commits = []

        async def run():
            write = functools.partial(async_serialize, commit_future=commits, transaction=transaction)
            return await asyncio.gather(*map(write, arrays, tensorstore_specs))

        asyncio.run(run())
        self._add_futures(commits)
        self._start_async_commit(on_commit_callback)

    def serialize_with_paths(self, arrays, paths, *, on_commit_callback=None, transaction=None):
        """`serialize`, with each array in its own folder.

        Args:
            arrays: sequence of arrays.
            paths: sequence of as many paths.
            on_commit_callback: function without arguments, called when all is written; None: none.
            transaction: `tensorstore.Transaction`, or None.
        """
        self.serialize(arrays, [get_tensorstore_spec(p) for p in paths], on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(self, shardings, tensorstore_specs, global_shapes=None, dtypes=None, concurrent_gb=32):
        """Reads arrays, once all is written.

        Args:
            shardings: sequence of shardings.
            tensorstore_specs: sequence of as many specifications.
            global_shapes: sequence of shapes, or None.
            dtypes: sequence of dtypes, or None.
            concurrent_gb: int: how many gigabytes are read at a time.

        Returns:
            List of arrays.
        """
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(self, shardings, paths, global_shapes=None, dtypes=None, concurrent_gb=32):
        """`deserialize` of folders.

        Args:
            shardings: sequence of shardings.
            paths: sequence of as many paths.
            global_shapes: sequence of shapes, or None.
            dtypes: sequence of dtypes, or None.
            concurrent_gb: int: how many gigabytes are read at a time.

        Returns:
            List of arrays.
        """
        return self.deserialize(shardings, [get_tensorstore_spec(p) for p in paths], global_shapes, dtypes, concurrent_gb)
