"""Policies of `checkpoint`: which values are saved for the backward pass.

A policy is called for every equation, `policy(primitive, *avals, **params)`, and returns whether
its results are saved.

    checkpoint(f, policy=checkpoint_policies.dots_saveable)
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, NamedTuple

from .._tracing.picklable import restorable

if TYPE_CHECKING:
    from collections.abc import Callable

_DOTS = {"dot_general", "conv_general_dilated", "ragged_dot_general"}


def everything_saveable(*_, **__):
    """Keep all results, as if there were no `checkpoint`."""
    return True


def nothing_saveable(*_, **__):
    """Keep nothing but the inputs: the default."""
    return False


def dots_saveable(prim, *_, **__):
    """Keep the results of matrix products and convolutions."""
    return prim.name in _DOTS


def dots_with_no_batch_dims_saveable(prim, *_, **params):
    """Keep the results of matrix products without batch dimensions."""
    return prim.name == "dot_general" and not any(params["dimension_numbers"][1])


def save_only_these_names(*names):
    """Keep only values marked by `checkpoint_name` with one of the names."""

    @restorable(save_only_these_names, *names)
    def policy(prim, *_, **params):
        return prim.name == "name" and params["name"] in names

    return policy


def save_any_names_but_these(*names):
    """Keep values marked by `checkpoint_name`, except those with one of the names."""

    @restorable(save_any_names_but_these, *names)
    def policy(prim, *_, **params):
        return prim.name == "name" and params["name"] not in names

    return policy


def save_anything_except_these_names(*names):
    """Keep everything except values marked with one of the names."""

    @restorable(save_anything_except_these_names, *names)
    def policy(prim, *_, **params):
        return prim.name != "name" or params["name"] not in names

    return policy


def save_from_both_policies(policy_1, policy_2):
    """Keep what either policy keeps."""

    @restorable(save_from_both_policies, policy_1, policy_2)
    def policy(prim, *args, **params):
        return policy_1(prim, *args, **params) or policy_2(prim, *args, **params)

    return policy


class Offloadable(NamedTuple):
    """The answer of an offload policy: keep the value, in memory of kind `dst`.

    A device has one kind of memory, so the value stays on the device.
    """

    src: str
    dst: str


class _Answer:
    """An answer of a policy."""

    def __init__(self, name, keep):
        self._name, self._keep = name, keep

    def __bool__(self):
        return self._keep

    def __repr__(self):
        return self._name


# Keep the results; compute them again.
Saveable, Recompute = _Answer("Saveable", True), _Answer("Recompute", False)


def save_and_offload_only_these_names(*, names_which_can_be_saved, names_which_can_be_offloaded, offload_src, offload_dst):
    """Keep only values marked with one of the names; those to be offloaded stay on the device,
    which has one kind of memory.

    Raises ValueError for a name in both lists.
    """
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if both := saved & offloaded:
        raise ValueError(
            f"The names should be exclusive and should not intersect in `names_which_can_be_saved` and"
            f" `names_which_can_be_offloaded`. Got names_which_can_be_saved={names_which_can_be_saved},"
            f" names_which_can_be_offloaded={names_which_can_be_offloaded} and the intersection={both}"
        )

    @restorable(
        save_and_offload_only_these_names,
        names_which_can_be_saved=names_which_can_be_saved,
        names_which_can_be_offloaded=names_which_can_be_offloaded,
        offload_src=offload_src,
        offload_dst=offload_dst,
    )
    def policy(prim, *_, **params):
        if prim.name == "name" and params["name"] in offloaded:
            return Offloadable(offload_src, offload_dst)
        return prim.name == "name" and params["name"] in saved

    return policy


def offload_dot_with_no_batch_dims(offload_src, offload_dst):
    """Keep the results of matrix products without batch dimensions; they stay on the device, which
    has one kind of memory.
    """

    @restorable(offload_dot_with_no_batch_dims, offload_src, offload_dst)
    def policy(prim, *args, **params):
        return dots_with_no_batch_dims_saveable(prim, *args, **params) and Offloadable(offload_src, offload_dst)

    return policy


if TYPE_CHECKING:

    class _Policies:
        """The type of `checkpoint_policies`, whose attributes are the policies."""

        everything_saveable: Callable[..., Any]
        nothing_saveable: Callable[..., Any]
        dots_saveable: Callable[..., Any]
        checkpoint_dots: Callable[..., Any]
        dots_with_no_batch_dims_saveable: Callable[..., Any]
        checkpoint_dots_with_no_batch_dims: Callable[..., Any]
        save_only_these_names: Callable[..., Any]
        save_any_names_but_these: Callable[..., Any]
        save_anything_except_these_names: Callable[..., Any]
        save_from_both_policies: Callable[..., Any]
        save_and_offload_only_these_names: Callable[..., Any]
        offload_dot_with_no_batch_dims: Callable[..., Any]


checkpoint_policies: _Policies = types.SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    save_only_these_names=save_only_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_anything_except_these_names=save_anything_except_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
)
