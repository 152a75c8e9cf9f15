"""What the tests do where a test or a child of it hangs, or meets an internal error."""

import os
import pathlib
import sys

import children
import pytest

HERE = pathlib.Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="stacks are asked for by a signal")
WAITS = "import threading\ndef waits():\n    threading.Event().wait()\nthreading.Thread(target=waits).start()\nprint('begun', flush=True)\n"


@pytest.fixture
def session(tmp_path):
    """Runs a test in a session of its own; gives its output."""

    def run(code, **env):
        (tmp_path / "test_one.py").write_text(code)
        variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])} | env
        variables.pop("PYTEST_XDIST_WORKER", None)
        command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path / "test_one.py")]
        done = children.run(command, env=variables, cwd=tmp_path, timeout=300)
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_child_that_does_not_end_prints_the_stacks_of_its_threads():
    with pytest.raises(AssertionError) as caught:
        children.run([sys.executable, "-c", WAITS + "waits()"], timeout=4)
    assert str(caught.value).count("in waits") == 2 and "begun" in str(caught.value)


def test_so_do_its_own_children():
    code = f"import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', {WAITS!r}]).returncode)"
    with pytest.raises(AssertionError) as caught:
        children.run([sys.executable, "-c", code], timeout=4)
    assert "in waits" in str(caught.value) and "did not end" in str(caught.value)


@pytest.fixture(scope="module")
def server():
    if sys.platform != "linux":
        pytest.skip("used on Linux alone")
    server = children.ForkServer("import threading", dict(os.environ, SEEN="yes"))
    yield server
    server.close()


def test_a_forked_child_is_a_program_by_itself(server):
    program = (
        "import atexit, os, sys\natexit.register(print, 'the end')\nprint(os.environ['SEEN'], __name__, threading.active_count(), 'x' in globals())\nx = 1"
    )
    for _ in range(2):
        done = server.run(program, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "yes __main__ 1 False\nthe end\n", "")
    assert server.run("import sys\nsys.exit(3)", timeout=60).returncode == 3
    assert server.run("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", timeout=60).returncode == -9
    failed = server.run("undefined", timeout=60)
    assert failed.returncode == 1 and failed.stderr.splitlines()[-1] == "NameError: name 'undefined' is not defined"


def test_a_forked_child_that_does_not_end_prints_its_stacks(server):
    with pytest.raises(AssertionError) as caught:
        server.run(WAITS + "waits()", timeout=5)
    assert str(caught.value).count("in waits") == 2 and "begun" in str(caught.value)
    assert server.run("print(1)", timeout=60).stdout == "1\n"


def test_a_test_that_does_not_end_is_ended(session):
    status, output = session("import threading\ndef test_it():\n    threading.Event().wait()", FERRAX_TEST_SECONDS="3")
    assert status and "test_it has run for 3 s" in output and "in test_it" in output


@pytest.mark.parametrize("where", ["here", "child"])
def test_an_internal_error_fails_the_test_that_met_it(session, where):
    report = "import os; open(os.environ['FERRAX_FAULTS'], 'a').write('invalid plan: a reason\\n')"
    code = report if where == "here" else f"import subprocess, sys; subprocess.run([sys.executable, '-c', {report!r}], check=True)"
    status, output = session(f"def test_one():\n    {code}\ndef test_other(): pass")
    assert status == 1 and "invalid plan: a reason" in output and "2 passed, 1 error" in output
