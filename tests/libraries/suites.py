"""The libraries' own test suites: what fails here and passes on JAX.

    python tests/libraries/suites.py FOLDER [WORDS ..] --write ours.json          # a library's source distribution, unpacked
    python tests/libraries/suites.py FOLDER --only ours.json --write jax.json     # in JAX's environment: the files where something failed
    python tests/libraries/suites.py --compare ours.json jax.json

Each file of tests runs in a process of its own, as several set what all of a process sees (`jax_enable_x64`). WORDS choose files by a part of
their path. An outcome is `passed`, `failed` or `skipped`; a test with subtests has failed if one of them has.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

WORST = ["skipped", "passed", "failed"]


def files(folder, words):
    """The files of tests beneath a folder, relative to it."""
    found = sorted({p.relative_to(folder) for form in ("*_test.py", "test_*.py", "*tests/*_tests.py") for p in folder.rglob(form)})
    return [p for p in found if not words or any(word in str(p) for word in words)]


def outcomes(folder, file, seconds):
    """What became of each test of a file, by `file::class::name`; of the whole file where it could not be read."""
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch, "report.xml")
        options = ["-p", "no:cacheprovider", "-q", "-c", "/dev/null", "--rootdir", ".", "--tb=short", f"--junitxml={report}"]
        try:
            done = subprocess.run([sys.executable, "-m", "pytest", *options, str(file)], cwd=folder, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return {str(file): "failed"}, f"{file}: more than {seconds} seconds\n"
        if not report.exists():
            return {str(file): "failed"}, done.stdout + done.stderr
        seen = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = f"{file}::{case.get('classname', '').split('.')[-1]}::{case.get('name')}"
            kinds = {child.tag for child in case}
            now = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            seen[name] = max(now, seen.get(name, now), key=WORST.index)
        return seen, done.stdout if "failed" in seen.values() else ""


def compare(ours, theirs):
    """Prints what failed in the first and passed in the second; gives how many."""
    bad = [name for name, now in ours.items() if now == "failed"]
    only = [name for name in bad if theirs.get(name) == "passed"]
    unknown = [name for name in bad if name not in theirs]
    for name in only + unknown:
        print(name, "" if name in theirs else "(not there)")
    print(f"{len(ours)} tests, {sum(now == 'passed' for now in ours.values())} pass, {len(bad)} fail, {len(only)} of them pass on JAX")
    return len(only) + len(unknown)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("folder", type=pathlib.Path, nargs="?")
    arguments.add_argument("words", nargs="*")
    arguments.add_argument("--only", type=pathlib.Path)
    arguments.add_argument("--write", type=pathlib.Path)
    arguments.add_argument("--seconds", type=float, default=600.0)
    arguments.add_argument("--compare", nargs=2, type=pathlib.Path)
    arguments = arguments.parse_args()
    if arguments.compare:
        sys.exit(compare(*(json.loads(p.read_text()) for p in arguments.compare)) > 0)
    chosen = files(arguments.folder, arguments.words)
    if arguments.only:
        failing = {name.split("::")[0] for name, now in json.loads(arguments.only.read_text()).items() if now == "failed"}
        chosen = [p for p in chosen if str(p) in failing]
    seen = {}
    for file in chosen:
        now, output = outcomes(arguments.folder, file, arguments.seconds)
        seen |= now
        bad = sum(o == "failed" for o in now.values())
        print(f"{file}: {len(now)} tests, {bad} fail", flush=True)
        if output:
            print(output, flush=True)
        if arguments.write:
            arguments.write.write_text(json.dumps(seen, indent=0))
    print(f"{len(seen)} tests, {sum(o == 'passed' for o in seen.values())} pass, {sum(o == 'failed' for o in seen.values())} fail")


if __name__ == "__main__":
    main()
