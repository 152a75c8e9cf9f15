//! `check` and `doc`: what can be said of the sources without running them.
//!
//! Invariant: lints run under the profile of the tests, so that build scripts and procedural macros compile once.

use crate::mutate;
use crate::python;
use crate::shell::Res;
use crate::tidy;

pub fn run(args: &[String]) -> Res {
    let venv = python::main(&["check"])?;
    venv.cargo().args(&["fmt", "--all", "--check"]).go()?;
    tidy::run(args)?;
    mutate::check_excuses()?;
    venv.run(&["-m", "ruff", "format", "--check", "--quiet", "python", "tests", "benches", "examples", "fuzz"]).go()?;
    venv.run(&["-m", "ruff", "check", "--quiet", "python", "tests", "benches", "examples"]).go()?;
    venv.cargo()
        .args(&["clippy", "--profile", "ci", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
        .go()?;
    doc(args)
}

pub fn doc(_: &[String]) -> Res {
    let venv = python::main(&[])?;
    venv.cargo()
        .args(&["doc", "--profile", "ci", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .go()
}
