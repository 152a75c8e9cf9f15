"""What the programs of the gallery share: their options, a progress bar, and whether there is anything to draw with."""

import argparse
import importlib.util
import os
import sys
import time


def options(doc, png, **more):
    """The command line of a program: `--short`, `--png FILE`, `--seed`, and an option for each of `more`, whose value is the default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="a few seconds' worth, as continuous integration runs it")
    parser.add_argument("--png", default=png, help="where the picture goes (default: %(default)s); it takes matplotlib")
    parser.add_argument("--seed", type=int, default=0)
    for name, value in more.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args()


def bar(total, what="step"):
    """A function of the steps done and a line about them: a bar that is drawn over itself, and on a file, a line per tenth."""
    tty, started = sys.stdout.isatty(), time.perf_counter()

    def show(done, text=""):
        if tty or done == total or done % max(total // 10, 1) == 0:
            full = 30 * done // total
            line = f"[{'#' * full}{'.' * (30 - full)}] {what} {done:4d}/{total}  {text}  {time.perf_counter() - started:4.1f} s"
            print(("\r" if tty else "") + line, end="" if tty and done < total else "\n", flush=True)

    return show


def plot():
    """matplotlib's pyplot, or None where it is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture: pip install matplotlib")
        return None
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    return plt


def save(figure, path):
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")
