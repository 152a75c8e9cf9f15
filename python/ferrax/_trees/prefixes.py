"""Prefixes of pytrees: one entry for a whole subtree, and the errors where a tree is not a prefix
of another.

    broadcast_prefix((1, 2), ("a", ["b", "c"]))        # [1, 2, 2]

Invariant: an error names the key path at which the two trees differ.
"""

from __future__ import annotations

from .. import _core
from .nodes import flatten_one_level_with_keys, is_tree_node, simple_key


def broadcast_prefix(prefix_tree, full_tree, is_leaf=None, *, name="broadcast_prefix prefix_tree", prefix_is_leaf=None):
    """The list of `prefix_tree`'s leaves, each repeated once per leaf of `full_tree` below it.

    Args:
        prefix_tree: pytree, a prefix of full_tree.
        full_tree: pytree.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.
        name: the name of the prefix in errors.
        prefix_is_leaf: as is_leaf, for prefix_tree; None: is_leaf.

    Returns:
        List of leaves.

    Raises:
        ValueError: where `prefix_tree` is not a prefix.
    """
    leaves, treedef = _core.tree_flatten(prefix_tree, prefix_is_leaf or is_leaf)
    try:
        subtrees = treedef.flatten_up_to(full_tree)
    except (ValueError, TypeError):
        for message in prefix_errors(prefix_tree, full_tree, name, prefix_is_leaf or is_leaf):
            raise ValueError(message) from None
        raise
    out = []
    for leaf, sub in zip(leaves, subtrees, strict=True):
        out.extend([leaf] * len(_core.tree_flatten(sub, is_leaf)[0]))
    return out


def spread_prefix(prefix, tree, name):
    """A specification called `name`, a prefix of `tree` with None among its leaves, as one entry
    per leaf of `tree`.

    Raises:
        ValueError: it is not a prefix; the message lists each mismatch.
    """

    def is_none(x):
        return x is None

    try:
        return broadcast_prefix(prefix, tree, name=name, prefix_is_leaf=is_none)
    except ValueError:
        found = prefix_errors(prefix, tree, name, is_none)
        raise ValueError(
            f"{name} specification must be a tree prefix of the corresponding value; \n  Mismatch details ({len(found)} found):\n  " + "\n  ".join(found)
        ) from None


def prefix_errors(prefix_tree, full_tree, name="prefix", is_leaf=None):
    """One message for each place where `prefix_tree` is not a prefix of `full_tree`; none if it is.

    Args:
        prefix_tree: pytree that should be a prefix of full_tree.
        full_tree: pytree.
        name: the name of the prefix in messages.
        is_leaf: predicate on nodes; a node for which it is true counts as a leaf. None: no such
          node.

    Returns:
        List of messages.
    """
    return list(_prefix_errors(prefix_tree, full_tree, "", name, is_leaf))


def _prefix_errors(prefix, full, path, name, is_leaf):
    if (is_leaf is not None and is_leaf(prefix)) or not is_tree_node(type(prefix)):
        return
    where = f"at key path\n    {name}{path}\nAt that key path, the prefix pytree {name} has a subtree of type"
    if type(prefix) is not type(full):
        yield (
            f"pytree structure error: different types {where}\n    {type(prefix)}\nbut at the same key path the full pytree has a "
            f"subtree of different type\n    {type(full)}."
        )
        return
    kind = type(prefix).__name__
    if isinstance(prefix, (tuple, list)) and len(prefix) != len(full):
        yield (
            f"pytree structure error: different lengths of {kind} {where} {kind} of length {len(prefix)}, but the full pytree has a "
            f"subtree of the same type but of length {len(full)}."
        )
        return
    p_pairs, p_data = flatten_one_level_with_keys(prefix)
    f_pairs, f_data = flatten_one_level_with_keys(full)
    if len(p_pairs) != len(f_pairs):
        p_names, f_names = [simple_key(k) for k, _ in p_pairs], [simple_key(k) for k, _ in f_pairs]
        yield (
            f"pytree structure error: different numbers of pytree children {where}\n    {type(prefix)}\nwith {len(p_names)} child keys\n"
            f"    {' '.join(p_names)}\nbut at the same key path the full pytree has a subtree of the same type but with "
            f"{len(f_names)} child keys\n    {' '.join(f_names)}\nso the symmetric difference on key sets is\n"
            f"    {' '.join(sorted(set(p_names) ^ set(f_names)))}"
        )
        return
    if p_data != f_data:
        import difflib

        diff = "\n".join("    " + line for line in difflib.ndiff([str(p_data)], [str(f_data)]))
        yield (
            f"pytree structure error: different pytree metadata {where}\n    {type(prefix)}\nwith metadata\n    {p_data}\nbut at the "
            f"same key path the full pytree has a subtree of the same type but with metadata\n    {f_data}\nso the diff in the "
            f"metadata at these pytree nodes is\n{diff}"
        )
        return
    for (key, p), (_, f) in zip(p_pairs, f_pairs, strict=True):
        yield from _prefix_errors(p, f, path + str(key), name, is_leaf)
