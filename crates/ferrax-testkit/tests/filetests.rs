//! Programs as text in, golden text out: `tests/filetests/*.txt`. A file is a program between a first line that says what is done with
//! it and a line `----`; below that stands what it gives. `FERRAX_BLESS=1` writes what it gives now; read the diff.
//!
//! ```text
//! simplify | lower | jvp | linearize | grad | vmap [axis] [of operand] | dce 01 | vmap lower ..      the words from left to right
//! ```
//!
//! Files in `tests/filetests/cpu` hold several programs, one a line after a title; below `----` stands what the CPU compiles of each, by tier where that
//! differs: which strategy each kernel, routine and loop takes. Tiers that a machine lacks are not compared there.
use ferrax_cpu::{CpuBackend, Tier};
use ferrax_ir::lower::lower;
use ferrax_ir::simplify::simplify;
use ferrax_kernel::Backend;
use ferrax_testkit::api::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn jvp_of(p: &Program) -> Res<Program> {
    let avals = p.in_avals();
    let n = avals.len();
    let diff: Vec<bool> = avals.iter().map(Aval::has_tangent).collect();
    let tangents: Vec<Aval> = avals.iter().filter(|a| a.has_tangent()).map(Aval::strong).collect();
    let f = |x: &[Value]| -> Res<Vec<Value>> {
        let mut t = x[n..].iter().cloned();
        let dx: Vec<Option<Value>> = diff.iter().map(|d| if *d { t.next() } else { None }).collect();
        let (y, dy) = jvp(&|x| Ok(ferrax_ir::current().inline(p, x)?.into_vec()), &x[..n], &dx)?;
        Ok(y.into_iter().chain(dy.into_iter().flatten()).collect())
    };
    Ok(make_program(&f, &[avals.to_vec(), tangents].concat())?.0)
}
/// The gradient of the first output, a scalar.
fn grad_of(p: &Program) -> Res<Program> {
    let f = |x: &[Value]| -> Res<Vec<Value>> {
        let (y, lin) = linearize(&|x| Ok(ferrax_ir::current().inline(p, x)?.into_vec()), x)?;
        let mut ct = vec![None; y.len()];
        ct[0] = Some(ferrax_ir::cx::lit(y[0].dtype(), 1.0));
        Ok(lin.transpose(&ct)?.into_iter().flatten().collect())
    };
    Ok(make_program(&f, p.in_avals())?.0)
}
/// The values known from the operands, which are all differentiable, then the results that are
/// linear in their tangents.
fn linearize_of(p: &Program) -> Res<Program> {
    let avals = p.in_avals();
    let f = |x: &[Value]| -> Res<Vec<Value>> {
        let (x, dx) = x.split_at(avals.len());
        let (y, lin) = linearize(&|x| Ok(ferrax_ir::current().inline(p, x)?.into_vec()), x)?;
        Ok(y.into_iter().chain(lin.apply(dx)?.into_iter().flatten()).collect())
    };
    Ok(make_program(&f, &[avals, avals].concat())?.0)
}
/// Three lanes of one operand, on an axis.
fn vmap_of(p: &Program, axis: usize, of: usize) -> Res<Program> {
    let mut ins = p.in_avals().to_vec();
    ins[of] = ins[of].batched(3, axis);
    let mut axes = vec![None; ins.len()];
    axes[of] = Some(axis);
    let outs = vec![0; p.out_avals().len()];
    Ok(make_program(&|x| vmap(&|x| Ok(ferrax_ir::current().inline(p, x)?.into_vec()), x, &axes, &outs), &ins)?.0)
}

fn result(task: &str, text: &str) -> Res<String> {
    let mut p = Arc::new(parse(text)?);
    let mut words = task.split_whitespace().peekable();
    while let Some(w) = words.next() {
        p = match w {
            "jvp" => Arc::new(jvp_of(&p)?),
            "grad" => Arc::new(grad_of(&p)?),
            "vmap" => {
                let number = |words: &mut std::iter::Peekable<std::str::SplitWhitespace>| {
                    let n = words.peek().and_then(|w| w.parse().ok());
                    if n.is_some() {
                        words.next();
                    }
                    n
                };
                let axis = number(&mut words).unwrap_or(0);
                let of = words.next_if_eq(&"of").and_then(|_| number(&mut words)).unwrap_or(0);
                Arc::new(vmap_of(&p, axis, of)?)
            }
            "linearize" => Arc::new(linearize_of(&p)?),
            "dce" => {
                let used = words.next().expect("a digit for each output: 1 where it is read");
                p.dce(&used.chars().map(|c| c == '1').collect::<Vec<_>>()).0
            }
            "simplify" => simplify(&p),
            "lower" => return Ok(lower(&p)?.to_string()),
            w => panic!("no task is called {w}"),
        };
    }
    Ok(p.to_string())
}

fn text_files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests").join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
    paths.sort();
    paths
}
/// Compares the files with the results, or rewrites them if requested.
fn compare(files: impl Iterator<Item = (PathBuf, String, String)>) {
    let mut wrong = vec![];
    for (path, head, got) in files {
        let text = std::fs::read_to_string(&path).expect("a text file");
        let golden = text.split_once("----\n").map_or("", |t| t.1);
        if got == golden {
            continue;
        }
        if std::env::var_os("FERRAX_BLESS").is_some() {
            std::fs::write(&path, format!("{}\n----\n{got}", head.trim_end())).expect("a writable file");
        } else {
            let first = got.lines().zip(golden.lines()).find(|(a, b)| a != b);
            wrong.push(format!("{}: {first:?}\n{got}", path.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} files give something else (FERRAX_BLESS=1 rewrites them)\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn files() {
    let paths = text_files("");
    assert!(paths.len() >= 35, "{} files", paths.len());
    compare(paths.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).expect("a text file");
        let head = text.split_once("----\n").map_or(&*text, |t| t.0);
        let (task, program) = head.split_once('\n').expect("a task, then a program");
        let got = match catch(|| result(task, program)) {
            Ok(s) => s.trim_end().to_string() + "\n",
            Err(e) => format!("{e:?}\n"),
        };
        (path, head.to_string(), got)
    }));
}

/// The text of a program compiled for a tier.
fn compiled(program: &str, tier: Tier) -> Res<String> {
    let plan = lower(&parse(program)?)?;
    let device = CpuBackend::with_tier(tier).expect("an available tier");
    let text = device.compile(plan.verify()?)?.text();
    // what passes make of loops is in `nests/`
    Ok(text.lines().filter(|line| !line.trim_start().starts_with("| ")).collect::<Vec<_>>().join("\n"))
}
/// Sections of a golden text, `== title [tiers]` before each: the text of each title and tier.
fn sections(golden: &str) -> BTreeMap<(String, &'static str), String> {
    let mut out = BTreeMap::new();
    for section in golden.split("== ").skip(1) {
        let (head, text) = section.split_once('\n').unwrap_or((section, ""));
        let (title, tiers) = head.trim_end_matches(']').rsplit_once(" [").unwrap_or((head, ""));
        for tier in Tier::ALL.iter().filter(|t| tiers.split(' ').any(|n| n == t.name())) {
            out.insert((title.to_string(), tier.name()), text.trim_end().to_string());
        }
    }
    out
}
#[test]
fn cpu_files() {
    // how rows are cut into chunks depends on it
    ferrax_cpu::set_num_threads(2);
    let paths = text_files("cpu");
    assert!(paths.len() >= 14, "{} files", paths.len());
    compare(paths.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).expect("a text file");
        let (head, golden) = text.split_once("----\n").unwrap_or((&text, ""));
        let before = sections(golden);
        let (mut got, mut titles) = (String::new(), BTreeSet::new());
        for case in head.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
            let (title, program) = case.split_once(": ").expect("a title, then a program");
            // the texts of another machine are found by it
            assert!(titles.insert(title), "{}: two cases are called {title:?}", path.display());
            let mut texts: Vec<(Vec<&str>, String)> = vec![];
            for tier in Tier::ALL {
                let text = match tier.is_available() {
                    true => match catch(|| compiled(program, tier)) {
                        Ok(s) => s.trim_end().to_string(),
                        Err(e) => format!("{e:?}"),
                    },
                    // the result of another machine
                    false => match before.get(&(title.to_string(), tier.name())) {
                        Some(text) => text.clone(),
                        None => continue,
                    },
                };
                match texts.iter_mut().find(|t| t.1 == text) {
                    Some(t) => t.0.push(tier.name()),
                    None => texts.push((vec![tier.name()], text)),
                }
            }
            for (tiers, text) in texts {
                got += &format!("== {title} [{}]\n{text}\n", tiers.join(" "));
            }
        }
        (path, head.to_string(), got)
    }));
}
