//! Virtual environments: `.venv` for the library itself, `.venv-oracle` with JAX beside it, `.venv-libraries` with what is written on JAX.
//!
//! Invariant: a stamp file in the environment holds the requirements it was filled from, so a second call costs
//! one file read, and an edit of the lists below is noticed.

use std::fs;
use std::path::PathBuf;

use crate::shell::{Cmd, Res, fail, quiet, root};

const GROUPS: &[(&str, &[&str])] = &[
    ("test", &["numpy", "ml_dtypes", "opt_einsum", "pytest", "pytest-xdist", "hypothesis", "array-api-strict>=2.4"]),
    ("demo", &["numpy", "ml_dtypes", "opt_einsum", "scikit-learn", "matplotlib"]),
    ("check", &["ruff"]),
    ("types", &["mypy==2.4.1", "basedpyright==1.40.2"]),
    ("docs", &["sphinx>=8,<10", "furo", "myst-parser", "sphinx-copybutton"]),
    ("wheel", &["maturin>=1.9,<2"]),
    ("manylinux", &["ziglang", "auditwheel"]),
    ("oracle", &["jax==0.10.2", "mpmath", "numpy", "ml_dtypes", "opt_einsum", "pytest", "pytest-xdist", "hypothesis"]),
];

pub struct Venv(PathBuf);

impl Venv {
    pub fn python(&self) -> PathBuf {
        if cfg!(windows) { self.0.join("Scripts/python.exe") } else { self.0.join("bin/python") }
    }

    /// The environment's Python with these arguments.
    pub fn run(&self, args: &[&str]) -> Cmd {
        Cmd::new(self.python()).args(args)
    }

    /// cargo, with pyo3 pointed at this environment: a change of interpreter would rebuild it.
    pub fn cargo(&self) -> Cmd {
        Cmd::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())).env("PYO3_PYTHON", self.python())
    }

    /// The folder that `import` searches.
    fn site_packages(&self) -> Res<PathBuf> {
        let text = self.run(&["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).read()?;
        Ok(PathBuf::from(text.trim()))
    }

    fn fill(&self, group: &str) -> Res {
        let wanted = GROUPS.iter().find(|(name, _)| *name == group).expect("a known group").1;
        let stamp = self.0.join(format!("ferrax-{group}.txt"));
        if fs::read_to_string(&stamp).is_ok_and(|text| text == wanted.join("\n")) {
            return Ok(());
        }
        self.run(&["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
            .args(wanted)
            .go()?;
        // The package is imported from the work tree: edits of Python files need no build.
        let pth = self.site_packages()?.join("ferrax-work-tree.pth");
        fs::write(pth, root().join("python").to_string_lossy().as_bytes()).map_err(|e| e.to_string())?;
        fs::write(stamp, wanted.join("\n")).map_err(|e| e.to_string())
    }
}

/// `.venv`, with the packages of these groups.
pub fn main(groups: &[&str]) -> Res<Venv> {
    open(".venv", groups)
}

/// `.venv-oracle`: JAX 0.10.2 and this library in one process.
pub fn oracle() -> Res<Venv> {
    open(".venv-oracle", &["oracle"])
}

/// `.venv-libraries`: the libraries of tests/libraries/requirements.txt, at the versions named there or at the newest. JAX's place is taken
/// first, so that they bring no other. With `FERRAX_TEST_OPTIONAL` also those of optional.txt, which are large. Those of alone.txt ask for older
/// versions of the others than there are and are installed without what they ask for. The extension has to be built.
pub fn libraries(newest: bool) -> Res<Venv> {
    let venv = open(".venv-libraries", &["test"])?;
    venv.run(&["-m", "ferrax", "adopt"]).go()?;
    let read = |list| fs::read_to_string(root().join("tests/libraries").join(list)).map_err(|e| e.to_string());
    let mut pinned = read("requirements.txt")?;
    if std::env::var_os("FERRAX_TEST_OPTIONAL").is_some() {
        pinned += &read("optional.txt")?;
    }
    let alone = read("alone.txt")?;
    let names = |lines: &str| -> Vec<String> {
        lines.lines().map(|l| if newest { l.split("==").next().unwrap_or(l) } else { l }.to_string()).collect()
    };
    let (wanted, alone) = (names(&pinned), names(&alone));
    let stamp = venv.0.join("ferrax-libraries.txt");
    let text = [&wanted[..], &alone[..]].concat().join("\n");
    if newest || !fs::read_to_string(&stamp).is_ok_and(|old| old == text) {
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--upgrade"];
        venv.run(&install).args(&wanted).go()?;
        venv.run(&install).args(&["--no-deps"]).args(&alone).go()?;
        fs::write(stamp, text).map_err(|e| e.to_string())?;
    }
    Ok(venv)
}

fn open(name: &str, groups: &[&str]) -> Res<Venv> {
    let venv = Venv(root().join(name));
    if !quiet(venv.run(&["-c", "import sys; assert sys.version_info >= (3, 11)"])) {
        let python = interpreter()?;
        Cmd::new(&python)
            .args(&["-m", "venv", "--clear", name])
            .go()
            .map_err(|e| format!("{e}\nthis Python cannot make virtual environments: apt-get install python3-venv"))?;
    }
    for group in groups {
        venv.fill(group)?;
    }
    Ok(venv)
}

/// Python 3.11 or newer: `$PYTHON`, or the first of the usual names.
fn interpreter() -> Res<String> {
    let usual = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"].map(String::from);
    let fits = |name: &String| quiet(Cmd::new(name).args(&["-c", "import sys; assert sys.version_info >= (3, 11)"]));
    match std::env::var("PYTHON").into_iter().chain(usual).find(fits) {
        Some(name) => Ok(name),
        None => fail("no Python 3.11 or newer: install one, or name it with PYTHON="),
    }
}
