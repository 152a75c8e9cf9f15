//! `check` and `doc`: what can be said of the sources without running them, and the documentation.
//!
//! Invariant: lints run under the profile of the tests, so that build scripts and procedural macros compile once.

use crate::shell::{Res, fail, root};
use crate::{extension, mutate, python};
use crate::{sizes, tidy};

pub fn run(args: &[String]) -> Res {
    let venv = python::main(&["check"])?;
    venv.cargo().args(&["fmt", "--all", "--check"]).go()?;
    tidy::run(args)?;
    sizes::run(&[])?;
    mutate::check_excuses()?;
    venv.run(&["-m", "ruff", "format", "--check", "--quiet", "python", "tests", "benches", "examples", "fuzz", "docs"])
        .go()?;
    venv.run(&["-m", "ruff", "check", "--quiet", "python", "tests", "benches", "examples", "docs"]).go()?;
    venv.cargo()
        .args(&["clippy", "--profile", "ci", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
        .go()
}

/// The site in `site/`, to be opened from its folder, its links and (where there is a Chromium) its pages looked at; before it the Rust documentation.
pub fn doc(args: &[String]) -> Res {
    let what = args.first().map(String::as_str);
    if ![None, Some("rust"), Some("site")].contains(&what) {
        return fail("doc takes rust or site");
    }
    if what != Some("site") {
        rustdoc()?;
    }
    if what == Some("rust") {
        return Ok(());
    }
    let venv = python::main(&["test", "docs"])?;
    extension::build(&venv, "ci", &["--package", "ferrax-python"])?;
    // Read anew each time: pages of which nothing changed may link to names of others that did.
    let sphinx = "-m sphinx -E -W --keep-going -q -b html -d target/doctrees docs site";
    venv.run(&sphinx.split(' ').collect::<Vec<_>>()).go()?;
    venv.run(&["docs/check_site.py", "site"]).args(args.get(1..).unwrap_or_default()).go()?;
    println!("{}", root().join("site/index.html").display());
    Ok(())
}

fn rustdoc() -> Res {
    let venv = python::main(&[])?;
    venv.cargo()
        .args(&["doc", "--profile", "ci", "--workspace", "--no-deps", "--quiet"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .go()
}
