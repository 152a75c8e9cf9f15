"""Programs on several processes, for tests: they run under `mpirun`, and are skipped where mpi4py or an MPI is not installed."""

import os
import pathlib
import shutil
import sys
import textwrap

import children
import pytest

RUN = shutil.which("mpirun", path=os.path.dirname(sys.executable)) or shutil.which("mpirun")


# What carries messages, by the variables that choose it: an MPI that takes calls of several threads is called without the interpreter.
TRANSPORTS = {"MpiTransport": {}, "Transport": {"MPI4PY_RC_THREAD_LEVEL": "serialized"}}


def command(processes, devices=1):
    """The command that starts processes, to which a program's is appended, and its environment."""
    pytest.importorskip("mpi4py")
    if RUN is None:
        pytest.skip("no mpirun")
    import ferrax

    package = pathlib.Path(ferrax.__file__).parents[1]
    quiet = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
    env = {**os.environ, **quiet, "PYTHONPATH": str(package), "FERRAX_NUM_CPU_DEVICES": str(devices), "FERRAX_NUM_THREADS": "1"}
    return [RUN, "--oversubscribe", "-n", str(processes), sys.executable], env


def mpirun(program, processes=2, devices=1, timeout=120, transport="MpiTransport"):
    """The output of a program on each of several processes."""
    run, env = command(processes, devices)
    begin = "import ferrax as jax, numpy as np\nimport ferrax.numpy as jnp\njax.distributed.initialize()\nfrom ferrax.experimental import multihost_utils as m\ni = jax.process_index()\n"
    return children.run([*run, "-c", begin + textwrap.dedent(program)], env=env | TRANSPORTS[transport], timeout=timeout)


def lines(program, **options):
    """The lines that processes print, sorted."""
    done = mpirun(program, **options)
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())
