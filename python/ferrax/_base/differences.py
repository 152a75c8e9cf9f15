"""Descriptions of the structural differences of two trees, for errors: loops whose carry changes,
branches that disagree, cotangents that do not fit.

>>> tree_differences({"a": 1}, {"a": (1, 2)})
[((DictKey(key='a'),), 'pytree leaf', "<class 'tuple'>", 'so their Python types differ')]
"""

import inspect

from .. import _core


def is_leaf_structure(tree):
    """Whether the tree is one leaf."""
    return tree.num_leaves == 1 and tree.num_nodes == 1


def tree_differences(a, b, path=()):
    """(path, kind of a, kind of b, explanation) for every place where two trees differ in
    structure.
    """
    leaf_a, leaf_b = _is_leaf(a), _is_leaf(b)
    if leaf_a and leaf_b:
        return []
    kind = lambda x, leaf: "pytree leaf" if leaf else str(type(x))
    if leaf_a != leaf_b or type(a) is not type(b):
        return [(path, kind(a, leaf_a), kind(b, leaf_b), "so their Python types differ")]
    (ca, da), (cb, db) = _core.flatten_one_level_with_keys(a), _core.flatten_one_level_with_keys(b)
    if len(ca) != len(cb) and isinstance(a, (tuple, list)):
        name = type(a).__name__
        return [(path, f"{name} of length {len(ca)}", f"{name} of length {len(cb)}", "so the lengths do not match")]
    if len(ca) != len(cb):
        keys_a, keys_b = ([_key(k) for k, _ in c] for c in (ca, cb))
        apart = [k for k in keys_a if k not in keys_b] + [k for k in keys_b if k not in keys_a]
        why = f"so the numbers of children do not match, with the symmetric difference of key sets: {{{' '.join(apart)}}}"
        return [(path, f"{type(a)} with {_count(ca)}", f"{type(b)} with {_count(cb)}", why)]
    if da != db:
        da, db = (tuple(d) if isinstance(d, list) else d for d in (da, db))
        return [(path, f"{type(a)} with pytree metadata {da}", f"{type(b)} with pytree metadata {db}", "so the pytree node metadata does not match")]
    out = []
    for (key, xa), (_, xb) in zip(ca, cb, strict=True):
        out += tree_differences(xa, xb, (*path, key))
    return out


def structure_changes(fun, now, before):
    """Sentences that describe how the structure of a call's arguments differs from an earlier
    call's.

    Both are (positional arguments, keyword arguments), each argument a pair: whether it is static,
    and its value or a tree of its structure.
    """
    (args, kwargs), (old_args, old_kwargs) = now, before
    if len(args) != len(old_args):
        return [f"now {_many(len(args))} and before {len(old_args)}, so the numbers do not match"]
    if kwargs.keys() != old_kwargs.keys():
        return [f"now the keywords {sorted(kwargs)} and before {sorted(old_kwargs)}, so the keywords do not match"]
    names = positional_names(fun)[: len(args)]
    names += [f"args[{i}]" for i in range(len(names), len(args))]
    pairs = [*zip(names, args, old_args, strict=True), *((f"kwargs['{k}']", kwargs[k], old_kwargs[k]) for k in kwargs)]
    out = []
    for name, (static, x), (was_static, y) in pairs:
        if static != was_static:
            out.append(f"at {name}, now {'static' if static else 'traced'} and before {'static' if was_static else 'traced'}")
        elif static:
            if type(x) is not type(y) or not x == y:
                out.append(f"at {name}, now static {x!r} and before {y!r}, so the static arguments do not match")
        else:
            out += [f"at {name}{''.join(map(str, path))}, now {a} and before {b}, {why}" for path, a, b, why in tree_differences(x, y)]
    return out


def positional_names(fun):
    """The names of a function's positional parameters; none where it has no signature."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _many(n):
    return f"{n} positional argument{'s' * (n != 1)}"


def _count(children):
    return f"{len(children)} {'child' if len(children) == 1 else 'children'}"


def _key(key):
    """A key as it is written in an index: 'a', 1."""
    return str(key).removeprefix("[<flat index ").removeprefix("[").removesuffix("]").removesuffix(">")


def _is_leaf(x):
    return is_leaf_structure(_core.tree_flatten(x)[1])
