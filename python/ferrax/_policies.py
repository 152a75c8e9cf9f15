"""What `checkpoint` keeps: each policy is asked for every primitive, `policy(primitive, *avals, **params)`, and says whether its results
are saved for the backward pass.

    checkpoint(f, policy=checkpoint_policies.dots_saveable)
"""

import types

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
    names = set(names)

    def policy(prim, *_, **params):
        return prim.name == "name" and params["name"] in names
    return policy


def save_any_names_but_these(*names):
    """Keep values marked by `checkpoint_name`, except those with one of the names."""
    names = set(names)

    def policy(prim, *_, **params):
        return prim.name == "name" and params["name"] not in names
    return policy


def save_anything_except_these_names(*names):
    """Keep everything except values marked with one of the names."""
    names = set(names)

    def policy(prim, *_, **params):
        return prim.name != "name" or params["name"] not in names
    return policy


def save_from_both_policies(policy_1, policy_2):
    """Keep what either policy keeps."""

    def policy(prim, *args, **params):
        return policy_1(prim, *args, **params) or policy_2(prim, *args, **params)
    return policy


checkpoint_policies = types.SimpleNamespace(
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
)
