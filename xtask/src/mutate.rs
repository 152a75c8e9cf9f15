//! `cargo xtask mutate`: break the rules of the primitives one by one; a law must fail for each. `cargo xtask mutate --picks`: force each choice
//! between the CPU's strategies the other way; a file of `tests/filetests/cpu` or a unit test must fail for each.
//!
//! A mutant is one edit in the body of a function. All mutants are built at once, in a copy of the sources under `target/mutate`, and
//! `FERRAX_MUTANT` chooses the one that a run of the tests has: see `mutate/arms.rs`. A mutant that no test notices is `ALIVE`, unless the
//! family's list of equivalent mutants says why it means the same. An excuse for a mutant that is caught, or that does not exist, is an
//! error too.
//!
//! ```text
//! cargo xtask mutate --only reduce.rs --list
//! cargo xtask mutate --only reduce.rs:162,batch
//! cargo xtask mutate --picks --only kernels/pieces.rs
//! ```

mod arms;
mod picks;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::shell::{Cmd, Res, fail, root};
use arms::Mutant;

/// What is broken, and the tests that must notice.
pub struct Family {
    /// Lists the equivalent mutants: `file | function | edited line | reason`.
    excuses: &'static str,
    /// The folder to which the names of files in that list are relative.
    folder: &'static str,
    /// The crate that is built, by itself or with edited crates below it, and its features.
    package: &'static str,
    features: &'static [&'static str],
    /// What is added to the crate's root, and to each edited body.
    switch: &'static str,
    uses: &'static str,
    find: fn() -> Res<Vec<Mutant>>,
    tests: Tests,
    /// Tests that take long: `--values` gives them what the others do not notice.
    values: Tests,
}
/// Arguments of `cargo test --no-run`, one build each, and what runs of the programs built: parts of them, a program's name and the words that
/// choose its tests, those that notice most first. Then, unless they are all that is to run, the other tests; and the slow ones.
pub struct Tests {
    builds: &'static [&'static [&'static str]],
    first: &'static [(&'static str, &'static str)],
    others: bool,
    slow: &'static [(&'static str, &'static str)],
}
impl Tests {
    const NONE: Tests = Tests { builds: &[], first: &[], others: false, slow: &[] };
}
/// A test program, and the arguments that choose its tests.
struct Law {
    program: PathBuf,
    chosen: Vec<String>,
}
/// The rules of the primitives. The laws are the tests of the testkit, which runs every primitive on the real evaluator.
const RULES: Family = Family {
    excuses: "crates/ferrax-testkit/equivalent_mutants.txt",
    folder: "crates/ferrax-ir/src/ops/",
    package: "ferrax-ir",
    features: &[],
    switch: "
/// What a lost sign leaves.
pub fn same(x: &Value) -> Res<Value> {
    Ok(x.clone())
}
",
    uses: "",
    find: all_rules,
    tests: Tests {
        builds: &[&["--tests", "--package", "ferrax-testkit"]],
        first: &[
            ("testkit-", "primitives::"),
            ("testkit-", "rows::"),
            ("testkit-", "laws::"),
            ("testkit-", "thrift::"),
            ("testkit-", "facts::"),
        ],
        others: true,
        slow: &[("testkit-", "fuzz::")],
    },
    values: Tests::NONE,
};

/// Seconds of CPU, which a busy machine does not use up: a test program takes a few, and a broken rule may loop for ever.
const CPU: u64 = 90;
/// For what waits for ever.
const LIMIT: Duration = Duration::from_secs(20 * 60);
/// KiB of addresses for a test; a broken rule may ask for any amount.
const MEMORY: usize = 6 << 20;
/// What ends a program past its CPU time.
const SIGXCPU: i32 = 24;
const SIGKILL: i32 = 9;

pub fn run(args: &[String]) -> Res {
    let only = args.iter().position(|a| a == "--only").and_then(|at| args.get(at + 1)).map_or("", String::as_str);
    let family = if args.iter().any(|a| a == "--picks") { &picks::PICKS } else { &RULES };
    let all = (family.find)()?;
    let excuses = excuses(family, &all)?;
    let mine: Vec<usize> = (0..all.len()).filter(|n| only.split(',').any(|o| all[*n].is(o))).collect();
    if args.iter().any(|a| a == "--list") {
        for m in mine.iter().map(|n| &all[*n]) {
            println!("{}:{} {}\n  - {}\n  + {}", m.file, m.line, m.rule, m.before.trim(), m.after.trim());
        }
        println!("{} mutants", mine.len());
        return Ok(());
    }
    let copy = copy_sources()?;
    let built = arms::insert(&copy, family, &all, mine.iter().copied().collect())?;
    println!("{} of {} mutants compile", built.len(), mine.len());
    let laws = ordered(&copy, &family.tests)?;
    if let Some((law, _)) = failing(&laws, None)? {
        return fail(format!("{law} fails before anything is broken"));
    }
    let mut caught = judge(&laws, &all, &built)?;
    if args.iter().any(|a| a == "--values") && !family.values.builds.is_empty() {
        println!("{} caught by texts", caught.len());
        let left: Vec<usize> = built.iter().copied().filter(|n| !caught.contains(n) && !excuses.contains(n)).collect();
        caught.extend(judge(&ordered(&copy, &family.values)?, &all, &left)?);
    }
    let (mut alive, mut excused, mut wrong) = (0, 0, 0);
    for n in &built {
        let place = all[*n].place();
        match (caught.contains(n), excuses.contains(n)) {
            (true, false) => (),
            (false, true) => excused += 1,
            (false, false) => {
                alive += 1;
                println!("ALIVE   {place}");
            }
            (true, true) => {
                wrong += 1;
                println!("CAUGHT, and so not equivalent: {place}");
            }
        }
    }
    let refused = mine.len() - built.len();
    println!("{} caught, {alive} alive, {excused} equivalent, {refused} did not compile", caught.len());
    match (alive, wrong) {
        (0, 0) => Ok(()),
        (0, _) => fail(format!("{} excuses what tests catch", family.excuses)),
        _ => fail("no test noticed a mutant"),
    }
}

fn all_rules() -> Res<Vec<Mutant>> {
    let mut all = Vec::new();
    for path in rust_files(RULES.folder.trim_end_matches('/'))? {
        let text = fs::read_to_string(root().join(&path)).map_err(|e| e.to_string())?;
        all.extend(arms::find(&path, &text));
    }
    Ok(all)
}

/// Every excuse is that of a mutant there is; part of `cargo xtask check`, since the mutants themselves are tried at night.
pub fn check_excuses() -> Res {
    [&RULES, &picks::PICKS].into_iter().try_for_each(|family| excuses(family, &(family.find)()?).map(drop))
}

/// The mutants that a line `file | function | edited line | reason` of the list excuses.
fn excuses(family: &Family, all: &[Mutant]) -> Res<BTreeSet<usize>> {
    let text = fs::read_to_string(root().join(family.excuses)).map_err(|e| format!("{}: {e}", family.excuses))?;
    let (mut out, mut wrong) = (BTreeSet::new(), Vec::new());
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        let [file, rule, after, reason] = parts[..] else {
            return fail(format!("{}: not `file | function | edited line | reason`: {line}", family.excuses));
        };
        let one_line = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
        let named = format!("{}{file}", family.folder);
        let fits = |m: &Mutant| m.file == named && m.rule == rule && one_line(&m.after) == one_line(after);
        let found: Vec<usize> = (0..all.len()).filter(|n| fits(&all[*n])).collect();
        if found.is_empty() || reason.is_empty() {
            wrong.push(line);
        }
        out.extend(found);
    }
    if wrong.is_empty() {
        Ok(out)
    } else {
        fail(format!("{}: no such mutant, or no reason:\n{}", family.excuses, wrong.join("\n")))
    }
}

/// The mutants for which a test fails.
fn judge(laws: &[Law], all: &[Mutant], built: &[usize]) -> Res<BTreeSet<usize>> {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    let (next, caught) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let work = || -> Res {
        while let Some(n) = built.get(next.fetch_add(1, Ordering::Relaxed)) {
            match failing(laws, Some(*n))? {
                Some((_, end)) => {
                    if let End::Stopped = end {
                        println!("stopped {}", all[*n].place());
                    }
                    caught.lock().expect("no worker panics").insert(*n);
                }
                None => println!("passes  {}", all[*n].place()),
            }
        }
        Ok(())
    };
    std::thread::scope(|s| {
        let all: Vec<_> = (0..workers).map(|_| s.spawn(work)).collect();
        all.into_iter().try_for_each(|w| w.join().expect("no worker panics"))
    })?;
    Ok(caught.into_inner().expect("no worker panics"))
}

#[derive(PartialEq)]
enum End {
    Passed,
    Failed,
    /// It ran past a limit.
    Stopped,
}

/// The first test program that does not pass, and how it ended.
fn failing(laws: &[Law], mutant: Option<usize>) -> Res<Option<(String, End)>> {
    for law in laws {
        let name = law.program.file_name().expect("a file").to_string_lossy();
        let name = format!("{name} {}", law.chosen.join(" "));
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                &format!("ulimit -v {MEMORY}; ulimit -t {CPU}; exec nice \"$0\" --quiet --test-threads 2 \"$@\""),
            ])
            .arg(&law.program)
            .args(&law.chosen);
        command.env("FERRAX_MUTANT", mutant.map_or(String::new(), |n| n.to_string())).env("RUST_BACKTRACE", "0");
        // where cargo would run it
        command.current_dir(root().join("target/mutate/crates/ferrax-testkit"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
        let end = end(child).map_err(|e| format!("{name}: {e}"))?;
        if end != End::Passed {
            return Ok(Some((name, end)));
        }
    }
    Ok(None)
}

fn end(mut child: Child) -> std::io::Result<End> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(match status.signal() {
                _ if status.success() => End::Passed,
                Some(SIGXCPU | SIGKILL) => End::Stopped,
                _ => End::Failed,
            });
        }
        if start.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            return Ok(End::Stopped);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn cargo(copy: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(args).arg("--manifest-path").arg(copy.join("Cargo.toml"));
    command.arg("--target-dir").arg(root().join("target/mutate-build")).args(["--profile", "ci"]);
    command
}

/// The tests, built, in their order.
fn ordered(copy: &Path, tests: &Tests) -> Res<Vec<Law>> {
    let programs = test_programs(copy, tests.builds)?;
    let named = |p: &Path, name: &str| p.file_name().is_some_and(|f| f.to_string_lossy().starts_with(name));
    let part = |(name, word): &(&str, &str)| {
        let program = programs.iter().find(|p| named(p, name)).cloned();
        program.map(|program| Law { program, chosen: vec![word.to_string()] }).ok_or(format!("no test program {name}"))
    };
    let mut out = tests.first.iter().map(part).collect::<Res<Vec<Law>>>()?;
    for program in programs.iter().filter(|_| tests.others) {
        let parts = tests.first.iter().chain(tests.slow).filter(|(name, _)| named(program, name));
        let chosen = parts.flat_map(|(_, word)| ["--skip".to_string(), word.to_string()]).collect();
        out.push(Law { program: program.clone(), chosen });
    }
    for slow in tests.slow {
        out.push(part(slow)?);
    }
    Ok(out)
}
fn test_programs(copy: &Path, builds: &[&[&str]]) -> Res<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = vec![];
    for tests in builds {
        let out = cargo(copy, &[&["test", "--no-run"], *tests].concat()).output();
        let out = out.map_err(|e| format!("cargo test: {e}"))?;
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        if !out.status.success() {
            return fail(text);
        }
        // Executable tests/laws.rs (target/ci/deps/laws-24cc43a81565772e)
        let path =
            |l: &str| Some(root().join(l.trim().strip_prefix("Executable ")?.split_once('(')?.1.trim_end_matches(')')));
        found.extend(text.lines().filter_map(path));
        if found.is_empty() {
            return fail(format!("no test programs in\n{text}"));
        }
    }
    Ok(found)
}

fn copy_sources() -> Res<PathBuf> {
    let copy = root().join("target/mutate");
    let list = Cmd::new("git").args(&["ls-files", "--cached", "--others", "--exclude-standard"]).read()?;
    for path in list.lines() {
        let (from, to) = (root().join(path), copy.join(path));
        let new = fs::read(&from).unwrap_or_default();
        // an unchanged file keeps its time, and what was built of it
        if from.is_file() && fs::read(&to).ok().as_ref() != Some(&new) {
            let folder = to.parent().expect("a file has a folder");
            fs::create_dir_all(folder).and_then(|()| fs::write(&to, new)).map_err(|e| e.to_string())?;
        }
    }
    Ok(copy)
}

fn rust_files(folder: &str) -> Res<Vec<String>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(root().join(folder)).map_err(|e| format!("{folder}: {e}"))?.flatten() {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            out.extend(rust_files(&path)?);
        } else if path.ends_with(".rs") {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}
