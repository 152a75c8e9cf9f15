"""absl's flags and JAX's configuration: command lines of programs."""

import subprocess
import sys

import pytest

SEEN = "print(jax.config.jax_enable_x64, jax.config.jax_debug_nans, jax.config.jax_numpy_rank_promotion, jax.config.jax_compilation_cache_max_size)"
PARSED = f"import jax, sys; jax.config.parse_flags_with_absl(); {SEEN}; jax.config.update('jax_enable_x64', False); jax.config.parse_flags_with_absl(); {SEEN}"
RUN = f"import jax; from absl import app; jax.config.config_with_absl(); app.run(lambda argv: print(argv[1:]) or {SEEN})"


def run(program, *args):
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_command_line_is_read():
    status, output, _ = run(PARSED, "--jax_enable_x64=true", "--unknown", "3", "--jax_numpy_rank_promotion=warn", "--", "--jax_debug_nans")
    assert (status, output) == (0, ["True False warn -1", "False False warn -1"])


def test_a_program_of_absl_s():
    status, output, _ = run(RUN, "--jax_enable_x64", "a", "--nojax_debug_nans", "b")
    assert (status, output) == (0, ["['a', 'b']", "True False allow -1"])


@pytest.mark.parametrize("wrong", ["--jax_enable_x63", "--jax_numpy_rank_promotion=foo", "--jax_enable_x64=perhaps"])
def test_mistakes_in_a_command_line_are_reported(wrong):
    status, output, errors = run(RUN, wrong)
    assert status == 1
    assert not output
    assert "Flags parsing error" in errors
    assert wrong.strip("-").split("=")[0] in errors
