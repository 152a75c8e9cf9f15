"""What notebooks and terminals show: pictures of arrays, folded programs, graphs, shardings, and what this machine is."""

import base64
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
import zlib

import numpy as np
import pytest

pytestmark = pytest.mark.ours


def parsed(text):
    """The text as elements: it is well formed."""
    return ET.fromstring(f"<x>{text}</x>")


def pixels(text):
    """The picture in the text, uint8[height, width, 3]."""
    data = base64.b64decode(re.search(r"data:image/png;base64,([^\"]*)", text)[1])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (n,) = struct.unpack(">I", data[at : at + 4])
        kind, body, crc = data[at + 4 : at + 8], data[at + 8 : at + 8 + n], data[at + 8 + n : at + 12 + n]
        assert struct.unpack(">I", crc) == (zlib.crc32(kind + body),)
        chunks[kind], at = body, at + 12 + n
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *kind = struct.unpack(">2I5B", chunks[b"IHDR"])
    assert kind == [8, 2, 0, 0, 0]  # bytes of red, green, blue
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_matrix_is_drawn(jax, jnp):
    text = jnp.eye(5)._repr_html_()
    parsed(text)
    assert "float32[5,5]" in text and "cpu:0, 100 bytes" in text and "0 to 1" in text and "[1. 0. 0. 0. 0.]" in text
    drawn = pixels(text)
    assert drawn.shape == (5, 5, 3)
    on, off = drawn[0, 0], drawn[0, 1]
    assert (on == [253, 231, 37]).all() and (off == [68, 1, 84]).all()
    assert (drawn == np.where(np.eye(5, dtype=bool)[..., None], on, off)).all()


def test_values_of_two_signs_have_white_between(jnp):
    drawn = pixels(jnp.array([[-2.0, 0.0, 1.0, jnp.nan, jnp.inf]])._repr_html_())[0]
    assert (drawn[0] == [33, 74, 160]).all() and (drawn[1] == 247).all() and drawn[2][0] > drawn[2][2] and (drawn[3:] == 160).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_matrices_of_any_dtype_are_drawn(jnp, dtype):
    x = jnp.array([[0, 1], [1, 0]]).astype(dtype)
    drawn = pixels(x._repr_html_())
    assert (drawn[0, 0] == drawn[1, 1]).all() and (drawn[0, 1] == drawn[1, 0]).all() and (drawn[0, 0] != drawn[0, 1]).any()


def test_images_are_drawn_in_their_colours(jnp):
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    assert (pixels(jnp.asarray(image)._repr_html_()) == image).all()
    floats = pixels(jnp.asarray(image / 255.0)._repr_html_())
    assert np.abs(floats.astype(int) - image).max() <= 1
    grey = pixels(jnp.full((9, 9, 1), 51, "uint8")._repr_html_())
    assert grey.shape == (9, 9, 3) and (grey == 51).all()


def test_large_arrays_are_thinned(jnp):
    assert pixels(jnp.ones((1000, 3))._repr_html_()).shape == (128, 3, 3)
    x = jnp.zeros((3000, 2000)).at[1500:].set(1.0)
    text = x._repr_html_()
    drawn = pixels(text)
    assert max(drawn.shape[:2]) <= 128 and (drawn[0] == [68, 1, 84]).all() and (drawn[-1] == [253, 231, 37]).all()
    assert len(text) < 20_000 and "22.89 MiB" in text


def test_other_arrays_are_text(jax, jnp):
    deleted = jnp.ones(3)
    deleted.delete()
    for x in (jnp.array(3), jnp.arange(5), jnp.ones((0, 3)), jnp.zeros((2, 2, 2, 2)), jax.random.key(0), jax.random.split(jax.random.key(0), 9), deleted):
        text = x._repr_html_()
        parsed(text)
        assert "<img" not in text and "<b>Array</b>" in text
    assert "key&lt;fry&gt;[]" in jax.random.key(0)._repr_html_() and "deleted" in deleted._repr_html_()
    assert "int32[], weak type" in jnp.asarray(3)._repr_html_() or "int32[]" in jnp.asarray(3)._repr_html_()


def test_tracers_are_shown_as_text(jax):
    seen = []
    jax.jit(lambda x: (seen.append(x._repr_html_()), x)[1])(1.0)
    assert seen == [None]


@pytest.fixture
def program(jax, jnp, lax):
    def f(x, y):
        def body(c, a):
            return c + a, jnp.sin(c)

        c, ys = lax.scan(body, x[0], x)  # the loop <of> f
        return jnp.where(c > 0, ys @ ys, y)

    jax.clear_caches()  # a jitted function that an earlier test called, where here, keeps the lines of that call
    return jax.make_jaxpr(f)(jnp.ones(3), 2.0)


def test_programs_fold_and_name_their_source(program):
    text = program._repr_html_()
    tree = parsed(text)
    folds = list(tree.iter("details"))
    assert len(folds) >= 3 and folds[0].get("open") is not None and all(d.get("open") is None for d in folds[1:])
    scan = next(d for d in folds if "scan[" in "".join(d.find("summary").itertext()))
    assert "c, ys = lax.scan(body, x[0], x)  # the loop <of> f" in "".join(scan.find("summary").itertext())
    inner = "".join(scan.itertext())
    assert "add g h" in inner and "return c + a, jnp.sin(c)" in inner and "dot_general" not in inner
    places = [s.get("title") for s in tree.iter("span")]
    assert all(re.search(r"base/test_html\.py:\d+:\d+ \(.*program.*\)$", p) for p in places) and len(places) >= 8
    assert "".join(tree.itertext()).count(" = ") >= 9
    assert program.jaxpr._repr_html_() == text


def test_programs_as_graphviz_text(jax, program):
    text = jax.graph.dot(program)
    assert text.startswith("digraph program {\n") and text.endswith("}\n") and text.count("{") == text.count("}")
    nodes = dict(re.findall(r'(?m)^\s+(n\d+) \[label="(.*?)"[,\]]', text))
    edges = re.findall(r'(?m)^\s+(n\d+) -> (n\d+) \[label="(.*?)"\];', text)
    names = [n.split(" ")[0].split("\\n")[0] for n in nodes.values()]
    assert {"slice", "squeeze", "scan", "add", "sin", "gt", "dot_general", "jit", "select_n"} <= set(names)
    named = {(nodes[a].split("\\n")[0], nodes[b].split("\\n")[0], t) for a, b, t in edges}
    assert {
        ("in 0", "slice", "f32[3]"),
        ("slice", "squeeze", "f32[1]"),
        ("scan", "dot_general", "f32[3]"),
        ("scan", "gt 0.0", "f32[]"),
        ("jit _where", "out 0", "f32[]"),
    } <= named
    assert text.count("subgraph cluster_") == 2 and 'label="jaxpr"' in text


def test_programs_as_pictures(jax, program):
    text = jax.graph.svg(program)
    tree = ET.fromstring(text)
    space = {"s": "http://www.w3.org/2000/svg"}
    words = [t.text for t in tree.iterfind(".//s:text", space)]
    assert sorted(words) == sorted(["in 0: f32[3]", "in 1: f32[]", "slice", "squeeze", "scan …", "gt", "dot_general", "jit _where …", "out 0: f32[]"])
    boxes = {w: (float(r.get("x")), float(r.get("y")), float(r.get("width"))) for w, r in zip(words, tree.iterfind(".//s:g/s:rect", space), strict=True)}
    order = ["in 0: f32[3]", "slice", "squeeze", "scan …", "gt", "jit _where …", "out 0: f32[]"]
    assert [boxes[w][1] for w in order] == sorted({boxes[w][1] for w in order})  # each below what it needs
    for a, (x, y, w) in boxes.items():
        assert 0 <= x and x + w <= float(tree.get("width"))
        assert not any(a != b and y == y2 and x < x2 < x + w for b, (x2, y2, _) in boxes.items())  # none over another
    assert len(tree.findall("s:path", space)) == 11


def test_graphs_of_all_that_holds_a_program(jax, jnp):
    f = jax.jit(lambda x: jnp.sin(x) + 1)
    assert jax.graph.dot(f.trace(1.0)) == jax.graph.dot(f.trace(1.0).jaxpr)
    assert "out 0: 3" in jax.graph.svg(jax.make_jaxpr(lambda: 3)())
    assert "in 0" in jax.graph.svg(jax.make_jaxpr(lambda x: x)(1.0))
    branches = jax.graph.dot(jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0))
    assert 'label="branches[0]"' in branches and 'label="branches[1]"' in branches
    for draw in (jax.graph.dot, jax.graph.svg):
        with pytest.raises(TypeError, match=r"graph: expected a program, as jax.make_jaxpr\(f\)\(\*args\) gives, got <class 'function'>"):
            draw(lambda x: x)


def test_shardings_show_their_parts(jax, child):
    one = jax.sharding.NamedSharding(jax.make_mesh((1,), ("a",)), jax.P("a"))
    assert "NamedSharding(" in parsed(one._repr_html_()).find("div/b").text
    assert "SingleDeviceSharding(" in jax.numpy.ones(2).sharding._repr_html_()
    code = """
    mesh = jax.make_mesh((2, 4), ("a", "b"))
    for spec in (jax.P("a", "b"), jax.P("b"), jax.P(None, ("a", "b")), jax.P()):
        print(jax.sharding.NamedSharding(mesh, spec)._repr_html_())
    """
    tables = [parsed(line).find("table") for line in child(code, NUM_CPU_DEVICES="8").splitlines()]
    cells = [[[c.text for c in row] for row in t] for t in tables]
    assert cells[0] == [["0", "1", "2", "3"], ["4", "5", "6", "7"]]
    assert cells[1] == [["0, 4", "1, 5", "2, 6", "3, 7"]]
    assert cells[2] == [["0", "1", "2", "3", "4", "5", "6", "7"]]
    assert cells[3] == [["0, 1, 2, 3, 4, 5, 6, 7"]]


def command(*args, **env):
    done = subprocess.run([sys.executable, "-m", "ferrax", *args], capture_output=True, text=True, timeout=120, env=os.environ | env)
    return done.returncode, done.stdout, done.stderr


def test_info_describes_the_machine(jax):
    status, out, _ = command("info", FERRAX_ENABLE_X64="1", FERRAX_NUM_THREADS="3")
    assert status == 0
    sections = dict(re.findall(r"(?m)^(\S.*):\n((?:  .*\n)+)", out))
    assert list(sections) == [
        "versions",
        "devices",
        "default device",
        "instructions",
        "graphics adapters",
        "limits",
        "flags that were set",
        "environment",
        "beside it",
    ]
    assert f"ferrax {jax.__version__} (" in sections["versions"] and f"numpy {np.__version__}" in sections["versions"]
    assert re.search(r"cpu:0: cpu \(\d+ threads?, \w+\)", sections["devices"]) and "gpu" in sections["devices"]
    tiers = dict(re.findall(r"(\w+): (.*)", sections["instructions"]))
    assert list(tiers) == ["portable", "avx2", "avx512"] and sum(", in use" in text for text in tiers.values()) == 1 and tiers["portable"].startswith("here")
    assert "none" in sections["graphics adapters"] or {"driver", "largest buffer", "kind"} <= set(re.findall(r"    ([\w ]+): ", sections["graphics adapters"]))
    assert "FERRAX_NUM_THREADS=3" in sections["limits"] and "64-bit types are on" in sections["limits"]
    assert "jax_enable_x64 = True" in sections["flags that were set"] and "FERRAX_ENABLE_X64=1" in sections["environment"]


def test_info_takes_no_arguments():
    assert command("info", "more")[0::2] == (1, "usage: python -m ferrax info\n")
    assert "python -m ferrax info" in command("--help")[1]


def test_these_modules_are_imported_at_first_use(child):
    code = "import sys\nprint([m for m in ('_base.html', 'graph', 'progress', 'compat') if f'ferrax.{m}' in sys.modules])"
    assert child(code).strip() == "[]"
