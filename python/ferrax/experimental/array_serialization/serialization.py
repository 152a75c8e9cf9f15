"""Asynchronous writing of arrays: `GlobalAsyncCheckpointManager`.

    manager = GlobalAsyncCheckpointManager()
    manager.serialize_with_paths([x], ["/tmp/a/x"])
    manager.wait_until_finished()
    x, = manager.deserialize_with_paths([x.sharding], ["/tmp/a/x"])

Invariant: `serialize` returns once the values are copied; later failures are raised by the next
call, on all processes.
"""

from __future__ import annotations

import abc
import asyncio
import functools
import itertools
import logging
import re
import threading
from typing import TYPE_CHECKING, Any

from ..._runtime.devices import process_count, process_index
from ...errors import JaxRuntimeError
from .tensorstore_impl import (
    CONTEXT as TS_CONTEXT,
    async_deserialize,
    async_serialize,
    get_tensorstore_spec as _get_spec,
    run_deserialization,
    run_serialization,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core import Array


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
_checkpoints = itertools.count()


def _attempt(f):
    """The exception of a call; None if it has none."""
    try:
        f()
    except Exception as e:
        return e
    return None


def get_tensorstore_spec(ckpt_path: Any, ocdbt: bool = False, process_idx: int | None = None, arr: Array | None = None, driver: str = "zarr") -> dict[str, Any]:
    """Like `tensorstore_impl.get_tensorstore_spec`, for the older format: each array in its own
    folder.

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


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
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
    """The interface of checkpoint managers: one checkpoint is written at a time, and the next one
    waits for it.
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises the failure of an earlier write, if any."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Waits until all is written."""

    @abc.abstractmethod
    def serialize(self, arrays: Sequence[Array], tensorstore_specs: Sequence[Any], *, on_commit_callback: Callable[[], None]) -> None:
        """Starts to write arrays."""

    @abc.abstractmethod
    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Any = None, dtypes: Any = None) -> list[Array]:
        """Reads arrays."""


class AsyncManager:
    """Waits for writes in a separate thread; a checkpoint is complete once all processes have
    written their parts.

    Args:
        timeout_secs: how long processes wait for each other.
    """

    def __init__(self, timeout_secs: float = 300) -> None:
        self._timeout_ms = int(timeout_secs * 1000)
        self._commit_futures = self._thread = self._exception = self._on_commit_callback = self._name = self._before = None

    def __del__(self):
        if self._thread is not None and self._thread.is_alive():
            logger.warning("wait_until_finished() was not called: errors of the last checkpoint are lost")

    def _commit(self):
        try:
            if self._name is None:
                self._written()
                self._committed()
            else:
                self._commit_together()
        except Exception as e:  # raised by the next call
            self._exception = e

    def _written(self):
        for future in self._commit_futures:
            future.result()

    def _committed(self):
        if self._on_commit_callback is not None:
            self._on_commit_callback()

    def _commit_together(self):
        from ..._runtime import coordination

        client, name, me = coordination.client(), self._name, process_index()
        failure = _attempt(self._written)
        if failure is not None:
            client.key_value_set(f"{name}/failed/{me}", repr(failure))
        try:
            client.wait_at_barrier(name, self._timeout_ms)
        except JaxRuntimeError as e:
            raise failure or BarrierTimeoutError(f"not all processes have written their parts of the checkpoint: {e}") from e
        if me == 0 and self._before is not None:
            client.key_value_delete(self._before)  # all have done with the one before
        failed = dict(client.key_value_dir_get(f"{name}/failed"))
        if failure is None and not failed and me == 0:
            failure = _attempt(self._committed)
            client.key_value_set(f"{name}/end", "" if failure is None else repr(failure))
        if failure is not None:
            raise failure
        text = next(iter(failed.values()), None) or client.blocking_key_value_get(f"{name}/end", self._timeout_ms)
        if text:
            raise RuntimeError(f"the checkpoint is not complete: process {next(iter(failed), f'{name}/0').rpartition('/')[2]} raised {text}")

    def _start_async_commit(self, on_commit_callback):
        self._on_commit_callback = on_commit_callback
        if process_count() > 1:
            self._before, self._name = self._name, f"ferrax/checkpoints/{next(_checkpoints)}"
        self._thread = threading.Thread(target=self._commit)
        self._thread.start()

    def _add_futures(self, futures):
        self._commit_futures = futures

    def check_for_errors(self) -> None:
        """Raises the failure of an earlier write, if any: of this process, or of another one."""
        failed, self._exception = self._exception, None
        if failed is not None:
            raise failed

    def wait_until_finished(self) -> None:
        """Waits until all arrays are written, by all processes, and the first process has run the
        callback; raises failures.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays with TensorStore in the background."""

    def serialize(
        self, arrays: Sequence[Array], tensorstore_specs: Sequence[Any], *, on_commit_callback: Callable[[], None] | None = None, transaction: Any = None
    ) -> None:
        """Starts to write arrays, after those of the previous call; returns when their values are
        copied.

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

    def serialize_with_paths(
        self, arrays: Sequence[Array], paths: Sequence[str], *, on_commit_callback: Callable[[], None] | None = None, transaction: Any = None
    ) -> None:
        """`serialize`, with each array in its own folder.

        Args:
            arrays: sequence of arrays.
            paths: sequence of as many paths.
            on_commit_callback: function without arguments, called when all is written; None: none.
            transaction: `tensorstore.Transaction`, or None.
        """
        self.serialize(arrays, [get_tensorstore_spec(p) for p in paths], on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any], global_shapes: Any = None, dtypes: Any = None, concurrent_gb: int = 32
    ) -> list[Array]:
        """Reads arrays, once all is written.

        Args:
            shardings: sequence of shardings.
            tensorstore_specs: sequence of as many specifications.
            global_shapes: sequence of shapes, or None.
            dtypes: sequence of dtypes, or None.
            concurrent_gb: int, how many gigabytes are read at a time.

        Returns:
            List of arrays.
        """
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes, concurrent_gb)

    def deserialize_with_paths(
        self, shardings: Sequence[Any], paths: Sequence[str], global_shapes: Any = None, dtypes: Any = None, concurrent_gb: int = 32
    ) -> list[Array]:
        """`deserialize` of folders.

        Args:
            shardings: sequence of shardings.
            paths: sequence of as many paths.
            global_shapes: sequence of shapes, or None.
            dtypes: sequence of dtypes, or None.
            concurrent_gb: int, how many gigabytes are read at a time.

        Returns:
            List of arrays.
        """
        return self.deserialize(shardings, [get_tensorstore_spec(p) for p in paths], global_shapes, dtypes, concurrent_gb)
