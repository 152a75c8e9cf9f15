"""The training example of many devices takes the same steps on every mesh, in one process and in several, and goes on from its checkpoints after a kill."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from processes import command

pytestmark = pytest.mark.ours

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "parallel.py"
STEPS = "4"


def last(output):
    """The last loss of a run."""
    return float(re.search(r"after \d+ steps: ([\d.]+) bits", output)[1])


def trained(*options, devices=1, processes=1, check=True):
    env, run = {**os.environ, "FERRAX_NUM_CPU_DEVICES": str(devices), "PYTHONUTF8": "1"}, [sys.executable]
    if processes > 1:
        run, env = command(processes, devices)
    done = subprocess.run([*run, "-m", "ferrax", str(EXAMPLE), "--png", os.devnull, *options], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 or not check, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def alone():
    return last(trained("--steps", STEPS))


@pytest.mark.parametrize("mesh", ["data=8", "tensor=8", "full=4,seq=2", "data=2,full=2,tensor=2"])
def test_every_mesh_takes_the_steps_of_one_device(alone, mesh):
    output = trained("--steps", STEPS, "--mesh", mesh, devices=8)
    assert abs(last(output) - alone) < 2e-5 and "8 devices, 1 processes" in output


def test_processes_resume_from_the_last_complete_checkpoint_after_a_kill(tmp_path):
    folder = tmp_path / "run"
    options = ["--steps", "400", "--every", "2", "--folder", str(folder), "--mesh", "full=4", "--png", os.devnull]
    run, env = command(4)
    started = subprocess.Popen([*run, "-m", "ferrax", str(EXAMPLE), *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in started.stdout:
        if line.endswith("checkpoint 4\n"):
            break
    of = lambda pid: [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    killed = of(started.pid)[2]
    os.kill(killed, signal.SIGKILL)
    begun = time.monotonic()
    _, errors = started.communicate(timeout=60)
    assert time.monotonic() - begun < 10 and started.returncode != 0 and f"(pid {killed} on" in errors and "has died" in errors, errors
    (folder / "step-90.unfinished").mkdir()  # a checkpoint that was being written counts for nothing

    done = max(int(p.name[5:]) for p in folder.glob("step-*") if p.name[5:].isdigit())
    output = trained("--steps", str(done + 2), "--folder", str(folder), "--mesh", "full=3", processes=3)
    assert f"goes on from step {done}" in output and "3 devices, 3 processes" in output
    assert abs(last(output) - last(trained("--steps", str(done + 2)))) < 1e-4
