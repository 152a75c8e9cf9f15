//! `cargo xtask <task>`: everything a person or CI runs in this repository.
//!
//! Invariant: continuous integration calls these tasks and nothing else, so what passes here passes there.
//! Each task makes what it needs (a virtual environment, the extension module) and says in one line what
//! it cannot make.
//!
//! ```text
//! cargo xtask test python -- -k vmap
//! ```

mod check;
mod extension;
mod files;
mod globals;
mod layers;
mod mutate;
mod names;
mod python;
mod rooms;
mod shell;
mod sizes;
mod thresholds;
mod tidy;
mod words;

use shell::{Res, fail, root};

struct Task {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Res,
}

const TASKS: &[Task] = &[
    Task {
        name: "demo",
        usage: "",
        about: "train a classifier of handwritten digits and draw what it learned",
        run: demo,
    },
    Task {
        name: "test",
        usage: "[landing|nightly|rust|python|gpu|oracle|libraries|newest] [-- ARGS]",
        about: "build once, then run the Rust and the Python tests (landing: but those that run by night, nightly: only those; oracle: against JAX; libraries: Flax, Optax ..; newest: their newest)",
        run: test,
    },
    Task {
        name: "check",
        usage: "",
        about: "formatting, lints, tidy: everything but the tests and the documentation",
        run: check::run,
    },
    Task {
        name: "types",
        usage: "[ARGS]",
        about: "the package's annotations, and programs that use it, under mypy and basedpyright",
        run: types,
    },
    Task {
        name: "sizes",
        usage: "",
        about: "the lines of each folder of the CPU backend, under their ceilings (xtask/sizes.txt)",
        run: sizes::run,
    },
    Task { name: "tidy", usage: "", about: "the rules of the house that no compiler knows", run: tidy::run },
    Task {
        name: "bless",
        usage: "",
        about: "rewrite the golden files from what the code prints now; read the diff",
        run: bless,
    },
    Task {
        name: "bench",
        usage: "dispatch|steady|rust [ARGS]",
        about: "release build, timed beside JAX and NumPy (rust: beside candle and burn)",
        run: bench,
    },
    Task {
        name: "outside",
        usage: "",
        about: "a crate that depends on ferrax by path, built from nothing: it runs, and what it takes and weighs is told",
        run: outside,
    },
    Task {
        name: "model",
        usage: "",
        about: "the scheduler under a model checker: every order of its threads, up to a bound of preemptions; processes in a million random orders",
        run: model,
    },
    Task {
        name: "soak",
        usage: "[processes] [--seconds N] [--seed N]",
        about: "threads, callbacks, interrupts, forks and exceptions at once, in one process or in several under mpirun; ends with figures",
        run: soak,
    },
    Task {
        name: "sanitize",
        usage: "[address|thread|miri] [-- ARGS]",
        about: "the Rust tests under a sanitizer (default: address), or a subset under Miri, where a nightly toolchain has it",
        run: sanitize,
    },
    Task {
        name: "doc",
        usage: "[rust|site [--screenshots FOLDER]]",
        about: "the Rust documentation and the site in site/, warnings and broken links refused",
        run: check::doc,
    },
    Task {
        name: "mutate",
        usage: "[--picks [--values]] [--list] [--only FILE[:LINE]|FUNCTION,..]",
        about: "break each rule of a primitive in turn; a law must fail each time (--picks: each choice of a strategy; a filetest must fail)",
        run: mutate::run,
    },
    Task {
        name: "develop",
        usage: "[--release]",
        about: "build the extension into python/ferrax and leave .venv ready to use",
        run: develop,
    },
    Task {
        name: "wheel",
        usage: "[--try]",
        about: "build a release wheel for any such machine into dist/; try it in a fresh environment",
        run: wheel,
    },
    Task {
        name: "compress",
        usage: "WHEEL..",
        about: "compress the files of wheels further, by zopfli",
        run: |wheels| wheels.iter().try_for_each(|w| extension::compress(w.as_ref())),
    },
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let task = args.first().and_then(|name| TASKS.iter().find(|t| t.name == name));
    let result = match task {
        Some(task) => (task.run)(&args[1..]),
        None => {
            println!("usage: cargo xtask TASK\n");
            for t in TASKS {
                println!("  {:<48} {}", format!("{} {}", t.name, t.usage), t.about);
            }
            match args.first() {
                None => Ok(()),
                Some(flag) if flag == "help" || flag == "--help" => Ok(()),
                Some(name) => fail(format!("no task is called {name}")),
            }
        }
    };
    if let Err(message) = result {
        eprintln!("xtask: {message}");
        std::process::exit(1);
    }
}

fn develop(args: &[String]) -> Res {
    let profile = if args.iter().any(|a| a == "--release") { "release" } else { "ci" };
    let venv = python::main(&["test"])?;
    extension::build(&venv, profile, &["--package", "ferrax-python"])?;
    println!("ready: {} -c 'import ferrax'", venv.python().display());
    Ok(())
}

fn demo(args: &[String]) -> Res {
    let venv = python::main(&["demo"])?;
    extension::build(&venv, "ci", &["--package", "ferrax-python"])?;
    venv.run(&["examples/digits.py"]).args(args).go()
}

/// Everything is built by one cargo call, so that the tests and the extension share one set of dependencies.
fn test(args: &[String]) -> Res {
    let (what, extra) = match args.iter().position(|a| a == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &args[args.len()..]),
    };
    let what = what.first().map_or("all", String::as_str);
    if !["all", "landing", "nightly", "rust", "python", "gpu", "oracle", "libraries", "newest"].contains(&what) {
        return fail(format!(
            "test takes landing, nightly, rust, python, gpu, oracle, libraries or newest, not {what}"
        ));
    }
    if what == "libraries" || what == "newest" {
        extension::build(&python::main(&["test"])?, "ci", &["--package", "ferrax-python"])?;
        // Their warnings are theirs.
        let pytest = ["-m", "pytest", "tests/libraries", "tests/docs/test_examples.py", "-o", "filterwarnings=default"];
        return python::libraries(what == "newest")?.run(&pytest).args(extra).go();
    }
    note_missing_vulkan();
    let venv = if what == "oracle" { python::oracle()? } else { python::main(&["test"])? };
    let both = what == "all" || what == "landing";
    // Unit tests have each library compiled a second time, the engine in two minutes: on landing they and the examples are only checked by clippy.
    let targets: &[&str] = if what == "landing" { &["--test", "*"] } else { &[] };
    if both {
        let tests = if what == "landing" { targets } else { &["--tests", "--examples"] };
        extension::build(&venv, "ci", &[&["--workspace", "--lib", "--bins"], tests].concat())?;
    } else if what != "rust" {
        extension::build(&venv, "ci", &["--package", "ferrax-python"])?;
    }
    if both || matches!(what, "rust" | "gpu") {
        let packages: &[&str] = if what == "gpu" { &["--package", "ferrax-wgpu"] } else { &["--workspace"] };
        rust_tests(&venv, packages, targets, if both { &[] } else { extra })?;
    }
    if what != "rust" {
        let mut pytest = venv.run(&["-m", "pytest", "tests"]);
        match what {
            "gpu" => pytest = pytest.args(&["-m", "gpu"]),
            "landing" => pytest = pytest.args(&["-m", "not nightly"]),
            "nightly" => pytest = pytest.args(&["-m", "nightly"]),
            _ => (),
        }
        // Two workers or more pay for their start; a filtered run is usually one file.
        let workers = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        if workers > 1 && extra.is_empty() {
            // each worker begins with files of its own, whose fixtures are then made once
            pytest = pytest.args(&["-n", &workers.to_string(), "--dist", "worksteal", "--durations", "40"]);
        }
        pytest.args(extra).go()?;
    }
    Ok(())
}

fn types(args: &[String]) -> Res {
    let venv = python::main(&["test", "types"])?;
    extension::build(&venv, "ci", &["--package", "ferrax-python"])?;
    venv.run(&["-m", "pytest", "tests/typing", "-q"]).args(args).env("FERRAX_TYPES", "1").go()
}

fn rust_tests(venv: &python::Venv, packages: &[&str], targets: &[&str], extra: &[String]) -> Res {
    let cargo = || venv.cargo();
    let nextest = shell::quiet(cargo().args(&["nextest", "--version"]));
    let run: &[&str] = if nextest {
        &["nextest", "run", "--cargo-profile", "ci", "--no-tests", "pass"]
    } else {
        &["test", "--profile", "ci"]
    };
    cargo().args(run).args(packages).args(targets).args(extra).go()?;
    // without a choice of targets cargo's own runner runs them too
    if !extra.is_empty() || !nextest && targets.is_empty() {
        return Ok(());
    }
    cargo().args(&["test", "--profile", "ci", "--doc"]).args(packages).go()
}

fn bless(_: &[String]) -> Res {
    let venv = python::main(&["test"])?;
    extension::build(&venv, "ci", &["--package", "ferrax-python"])?;
    venv.cargo().args(&["test", "--profile", "ci", "--workspace"]).env("FERRAX_BLESS", "1").go()?;
    venv.run(&["-m", "pytest", "tests", "-q"]).env("FERRAX_BLESS", "1").go()?;
    shell::Cmd::new("git").args(&["diff", "--stat"]).go()
}

fn model(_: &[String]) -> Res {
    let venv = python::main(&[])?;
    venv.cargo()
        .args(&["test", "--profile", "ci", "--quiet", "--package", "ferrax-runtime", "--features", "loom"])
        .args(&["--test", "model", "--", "--nocapture", "--test-threads", "1"])
        .go()?;
    let seeds = std::env::var("SEEDS").unwrap_or_else(|_| "0..1000000".into());
    venv.cargo()
        .args(&["test", "--profile", "ci", "--quiet", "--package", "ferrax-peers"])
        .args(&["--test", "model", "--", "--nocapture"])
        .env("SEEDS", &seeds)
        .go()
}

fn soak(args: &[String]) -> Res {
    let venv = python::main(&["test"])?;
    extension::build(&venv, "ci", &["--package", "ferrax-python"])?;
    match args.first().map(String::as_str) {
        Some("processes") => venv.run(&["tests/soak_processes.py"]).args(&args[1..]).go(),
        _ => venv.run(&["tests/soak.py"]).args(args).go(),
    }
}

const SANITIZED: [&str; 10] = [
    "ferrax-kernel",
    "ferrax-host",
    "ferrax-linalg",
    "ferrax-cpu",
    "ferrax-ir",
    "ferrax-transform",
    "ferrax-runtime",
    "ferrax-peers",
    "ferrax",
    "ferrax-testkit",
];
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Addresses need no instrumented standard library, so that the stable compiler will do; threads do, so they want a nightly one with the
/// library's source. Miri runs no machine code: what it can run is the waist.
fn sanitize(args: &[String]) -> Res {
    let (what, extra) = match args.iter().position(|a| a == "--") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &args[args.len()..]),
    };
    let packages: Vec<&str> = SANITIZED.iter().flat_map(|c| ["--package", *c]).collect();
    let tests = ["--profile", "ci", "--lib", "--tests", "--target", TARGET, "--target-dir", "target/sanitize"];
    match what.first().map_or("address", String::as_str) {
        "address" => shell::Cmd::new("cargo")
            .args(&["test"])
            .args(&packages)
            .args(&tests)
            .args(extra)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            // The pool keeps blocks to the end of the process: nothing that a leak check could tell from a leak. Tests ask for more than there is.
            .env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")
            .go(),
        "thread" if nightly_has_library_source() => shell::Cmd::new("cargo")
            .args(&["+nightly", "test", "-Zbuild-std"])
            .args(&packages)
            .args(&tests)
            .args(extra)
            .env("RUSTFLAGS", "-Zsanitizer=thread")
            .go(),
        "thread" => fail(
            "the thread sanitizer wants a nightly compiler with rust-src: beside a library that is not instrumented it reports the library's own channels",
        ),
        "miri" => shell::Cmd::new("cargo")
            .args(&["+nightly", "miri", "test", "--package", "ferrax-kernel", "--lib", "--test", "plans"])
            .args(extra)
            .env("MIRIFLAGS", "-Zmiri-strict-provenance")
            .go(),
        other => fail(format!("sanitize takes address, thread or miri, not {other}")),
    }
}
fn nightly_has_library_source() -> bool {
    let sysroot = shell::Cmd::new("rustc").args(&["+nightly", "--print", "sysroot"]).read();
    sysroot.is_ok_and(|s| std::path::Path::new(s.trim()).join("lib/rustlib/src/rust/library/Cargo.lock").is_file())
}

fn bench(args: &[String]) -> Res {
    let Some(name) = args.first() else { return fail("bench takes a name: dispatch, steady, rust") };
    if name == "rust" {
        let run = "run --release --quiet --manifest-path benches/rust/Cargo.toml --target-dir target/bench-rust --";
        let run: Vec<&str> = run.split(' ').collect();
        return shell::Cmd::new("cargo").args(&run).args(&args[1..]).go();
    }
    let script = root().join("benches").join(format!("{name}.py"));
    if !script.is_file() {
        return fail(format!("there is no benches/{name}.py"));
    }
    // What is timed is what a user would install: the wheel's module.
    let built = extension::wheel(&python::main(&["wheel"])?)?;
    let venv = python::oracle()?;
    extension::install_from_wheel(&venv, &built)?;
    venv.run(&[script.to_str().expect("UTF-8 path")]).args(&args[1..]).go()
}

/// What cargo builds the crate outside by, where the binary lies, for which processors, and the most bytes that it may have.
const OUTSIDE: &[(&str, &str, Option<&str>, u64)] = &[
    ("dev", "debug", None, u64::MAX),
    ("release", "release", None, u64::MAX),
    ("small", "small", None, 5_500_000),
    #[cfg(target_arch = "x86_64")]
    ("small", "small", Some("x86-64-v3"), 5_000_000),
];

fn outside(_: &[String]) -> Res {
    let folder = root().join("target/outside");
    for (profile, place, processor, most) in OUTSIDE {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| e.to_string())?;
        }
        let build = "build --quiet --manifest-path examples/outside/Cargo.toml --target-dir target/outside --profile";
        let start = std::time::Instant::now();
        let mut cargo = shell::Cmd::new("cargo").args(&build.split(' ').collect::<Vec<_>>()).args(&[profile]);
        if let Some(p) = processor {
            cargo = cargo.env("RUSTFLAGS", format!("-C target-cpu={p}"));
        }
        cargo.go()?;
        let took = start.elapsed().as_secs_f64();
        let binary = folder.join(place).join(format!("outside{}", std::env::consts::EXE_SUFFIX));
        shell::Cmd::new(&binary).go()?;
        let size = binary.metadata().map_err(|e| e.to_string())?.len();
        let on = processor.map_or(String::new(), |p| format!(" for {p}"));
        println!("{profile}{on}: built from nothing in {took:.0} s, {:.2} MB", size as f64 / 1e6);
        if size > *most {
            return fail(format!("{} is larger than {:.1} MB", binary.display(), *most as f64 / 1e6));
        }
    }
    Ok(())
}

fn wheel(args: &[String]) -> Res {
    let groups: &[&str] = if cfg!(target_os = "linux") { &["wheel", "manylinux"] } else { &["wheel"] };
    let venv = python::main(groups)?;
    let built = extension::portable_wheel(&venv)?;
    extension::compress(&built)?;
    let size = built.metadata().map_err(|e| e.to_string())?.len();
    println!("{}  {:.1} MB", built.display(), size as f64 / 1e6);
    if args.iter().any(|a| a == "--try") {
        venv.run(&["tests/fresh_environment.py", built.to_str().expect("UTF-8 path")]).go()?;
    }
    Ok(())
}

/// GPU tests need a Vulkan driver, which only the system's package manager can bring.
fn note_missing_vulkan() {
    if !cfg!(target_os = "linux")
        || std::env::var_os("VK_DRIVER_FILES").is_some()
        || std::env::var_os("VK_ICD_FILENAMES").is_some()
    {
        return;
    }
    let has_driver = |dir: &str| std::fs::read_dir(dir).is_ok_and(|mut d| d.next().is_some());
    if !["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"].into_iter().any(has_driver) {
        eprintln!("xtask: no Vulkan driver, so the GPU tests cannot run: apt-get install mesa-vulkan-drivers");
    }
}
