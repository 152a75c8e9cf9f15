"""The structures of pytrees as protocol buffers, as JAX writes them.

A message has numbered fields, each a varint or counted bytes: the nodes in postorder (field 1), and
the strings that are keys of dicts (field 2). Invariant:
`deserialize(registry, serialize(treedef)) == treedef`.

    serialize(tree_structure((1,))).hex()     # 0a021001 (a leaf) 0a0408011004 (a tuple of one)
"""

from .._core import PyTreeDef

_PROTO_KINDS = {list: 2, type(None): 3, tuple: 4, dict: 5}


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _counted(field, data):
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def serialize(self):
    """The structure as bytes.

    Raises ValueError for nodes of a user's class and keys that are not strings.
    """
    nodes, strings = [], {}

    def visit(treedef):
        children, data = treedef.children(), treedef.node_data()
        for child in children:
            visit(child)
        if data is None:
            nodes.append(b"\x10\x01")
            return
        if data[0] not in _PROTO_KINDS:
            raise ValueError(
                "User-defined nodes are not supported when serializing pytrees as protocol buffers. You should either convert the user-defined nodes "
                "to another type or use pickle instead."
            )
        node = (b"\x08" + _varint(len(children)) if children else b"") + bytes([16, _PROTO_KINDS[data[0]]])
        if data[0] is dict and children:
            if not all(isinstance(k, str) for k in data[1]):
                raise ValueError("Only string keys are supported in proto pytree serialization.")
            ids = b"".join(_varint(strings.setdefault(k, len(strings))) for k in data[1])
            node += _counted(3, _counted(1, ids))
        nodes.append(node)

    visit(self)
    return b"".join([_counted(1, n) for n in nodes] + [_counted(2, s.encode()) for s in strings])


def _read_varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        n, shift, at = n | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return n, at


def _fields(data):
    """(number, value) of each field: an int or bytes."""
    at = 0
    try:
        while at < len(data):
            tag, at = _read_varint(data, at)
            value, at = _read_varint(data, at)
            if tag & 7 == 2:
                if at + value > len(data):
                    raise IndexError
                value, at = data[at : at + value], at + value
            elif tag & 7:
                raise IndexError
            yield tag >> 3, value
    except IndexError:
        raise ValueError("Could not deserialize PyTreeDefProto.") from None


def deserialize(registry, data):
    """The structure that `serialize` wrote. Raises ValueError for bytes that do not hold one."""
    message = list(_fields(data))
    strings = [value.decode() for field, value in message if field == 2]
    kinds = {number: kind for kind, number in _PROTO_KINDS.items()}
    stack = []
    for node in (dict(_fields(value)) for field, value in message if field == 1):
        if node.get(2) == 1:
            stack.append(PyTreeDef.from_node_data_and_children(None, []))
            continue
        if node.get(2) not in kinds or node.get(1, 0) > len(stack):
            raise ValueError("Malformed pytree proto (invalid node type)")
        split = len(stack) - node.get(1, 0)
        keys, packed, at = [], dict(_fields(node.get(3, b""))).get(1, b""), 0
        while at < len(packed):
            index, at = _read_varint(packed, at)
            keys.append(strings[index])
        kind = kinds[node[2]]
        stack[split:] = [PyTreeDef.from_node_data_and_children((kind, keys if kind is dict else None), stack[split:])]
    if len(stack) != 1:
        raise ValueError("PyTreeDef traversal did not yield a singleton.")
    return stack[0]
