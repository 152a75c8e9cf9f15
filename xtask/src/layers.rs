//! The layers of the Python package: which module may import which.
//!
//! A layer is a folder, or a few folders side by side. A public module beside the folders has the layer of the highest folder that it
//! imports. Private modules are in folders.
//!
//! Invariant: imports point down, or sideways without a ring. They are read by lines, those inside functions included, and a function
//! imports nothing but what `LAZY` names. What only has to come late comes by a `__getattr__` of an `__init__.py`. Imports under
//! `if TYPE_CHECKING:` are not executed, so annotations may name classes of any layer.
//!
//! ```text
//! python/ferrax/lax/_loops.py:9: ferrax.lax._loops must not import ferrax.numpy._manipulation.joining, of a higher layer (numpy)
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::files::File;

/// From the bottom up: the folders of each layer.
const LAYERS: &[&[&str]] = &[
    &["_core"], // the extension
    &["_base"],
    &["_trees"],
    &["_runtime"],
    &["_tracing"],
    &["_sharding"],
    &["_references"],
    &["_transforms"],
    &["interpreters"],
    &["lax"],
    &["numpy"],
    &["image", "nn", "random", "scipy"],
    &["_maps", "_export"],
    &["example_libraries", "experimental", "extend"],
    &["ferrax", "compat", "__main__"],
];

/// Public modules that must be in a folder, because of their names, and import modules of higher layers: with the layer that they have.
const HIGHER: &[(&str, &str)] = &[("interpreters.xla", "extend")];

/// Folders of tests that are of no layer.
const TESTS: &[&str] = &[
    "acceptance", // what the library was asked to be
    "api",        // names, signatures and options of all modules
    "cpu",        // compiled loops and kernels
    "docs",       // documents, docstrings and examples
    "gpu",
    "harness", // the tests' own tools
    "libraries",
    "typing",
];

/// What a function may import: modules that are expensive to import and rarely used.
const LAZY: &[&str] = &[
    "absl",
    "ferrax._base.differences",
    "ferrax._base.html",
    "ferrax._base.layouts",
    "ferrax._base.log_levels",
    "ferrax._runtime.coordination",
    "ferrax._runtime.processes",
    "ferrax._trees.proto",
    "dataclasses",
    "difflib",
    "hashlib",
    "ml_dtypes",
    "mpi4py",
    "opt_einsum",
    "rich",
    "tensorstore",
    "tqdm",
    "traceback",
];

/// Its functions import what the extension asks for, at the first use, from any layer.
const HOOKS: &str = "ferrax._base.hooks";

/// Modules by their names, with what each imports: the target, the line, and whether the import stands inside a function.
type Modules<'a> = BTreeMap<String, (&'a File, Vec<Import>)>;

struct Import {
    target: String,
    line: usize,
    late: bool,
}

pub fn python_imports_point_down(files: &[File]) -> Vec<String> {
    let mut names: BTreeSet<String> = files.iter().filter_map(|f| module_name(&f.path)).collect();
    names.insert("ferrax._core".into());
    let mut modules = Modules::new();
    for f in files {
        if let Some(name) = module_name(&f.path) {
            modules.insert(name.clone(), (f, imports(f, &name, &names)));
        }
    }
    if let Some(found) = ring(&modules) {
        return vec![format!("python/ferrax: a ring of imports: {}", found.join(" -> "))];
    }
    let mut out = Vec::new();
    for (name, (f, imports)) in &modules {
        let Some((rank, _)) = layer(name, &modules) else {
            out.push(format!("{}: the module is in no folder that xtask/src/layers.rs names", f.path));
            continue;
        };
        for i in imports {
            let place = format!("{}:{}", f.path, i.line);
            let whole = i.target.split('.').next().unwrap_or_default();
            if i.late && name != HOOKS && !LAZY.contains(&whole) && !LAZY.contains(&i.target.as_str()) {
                out.push(format!(
                    "{place}: a function imports {}; xtask/src/layers.rs says what may come late",
                    i.target
                ));
            }
            if names.contains(&i.target)
                && name != HOOKS
                && let Some((above, called)) = layer(&i.target, &modules)
                && above > rank
            {
                out.push(format!("{place}: {name} must not import {}, of a higher layer ({called})", i.target));
            }
        }
        for (n, line) in f.text.lines().enumerate() {
            if line.contains("import_module(") && !f.path.ends_with("/__init__.py") {
                out.push(format!("{}:{}: only an __init__.py imports by name", f.path, n + 1));
            }
        }
    }
    out
}

/// The tests of a layer are in the folder of its name, without the underscore.
pub fn tests_mirror_the_package(files: &[File]) -> Vec<String> {
    let is_test =
        |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with("test_") && name.ends_with(".py"));
    let mirrored: BTreeSet<&str> =
        LAYERS.iter().flat_map(|folders| folders.iter()).map(|f| f.trim_matches('_')).collect();
    let tests = files.iter().filter_map(|f| f.path.strip_prefix("tests/")).filter(is_test);
    tests
        .filter(|path| path.split_once('/').is_none_or(|(folder, _)| !mirrored.contains(folder) && !TESTS.contains(&folder)))
        .map(|path| format!("tests/{path}: a test is in the folder of the layer that it tests, or in one that xtask/src/layers.rs lists"))
        .collect()
}

fn module_name(path: &str) -> Option<String> {
    let inner = path.strip_prefix("python/ferrax/")?.strip_suffix(".py")?;
    let inner = inner.strip_suffix("__init__").unwrap_or(inner).trim_end_matches('/');
    Some(if inner.is_empty() { "ferrax".into() } else { format!("ferrax.{}", inner.replace('/', ".")) })
}

/// The layer of a module: its rank, and the folder of that layer by which it has it.
fn layer<'a>(module: &'a str, modules: &'a Modules) -> Option<(usize, &'a str)> {
    let inner = module.strip_prefix("ferrax.").unwrap_or(module);
    let folder = inner.split('.').next().unwrap_or_default();
    let folder = HIGHER.iter().find(|(name, _)| *name == inner).map_or(folder, |(_, folder)| folder);
    if let Some(rank) = LAYERS.iter().position(|folders| folders.contains(&folder)) {
        return Some((rank, folder));
    }
    let (_, imports) = modules.get(module).filter(|_| inner == folder && !folder.starts_with('_'))?;
    // It ends: rings have been reported before.
    let below = imports.iter().filter(|i| i.target.starts_with("ferrax")).filter_map(|i| layer(&i.target, modules));
    Some(below.max_by_key(|(rank, _)| *rank).unwrap_or((0, "_core")))
}

/// The import statements of a file, outside its texts.
fn imports(f: &File, name: &str, names: &BTreeSet<String>) -> Vec<Import> {
    let package = f.path.ends_with("/__init__.py");
    let mut out = Vec::new();
    let (mut in_text, mut for_types) = (false, false);
    let mut lines = f.text.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        if !line.is_empty() && !line.starts_with([' ', '\t', ')']) {
            for_types = line.starts_with("if TYPE_CHECKING:") || line.starts_with("if _typing.TYPE_CHECKING:");
        }
        let quotes = line.matches("\"\"\"").count();
        let was = in_text;
        in_text ^= quotes % 2 == 1;
        if was || quotes > 0 || for_types {
            continue;
        }
        let late = line.starts_with([' ', '\t']);
        let mut statement = line.split('#').next().unwrap_or_default().trim().to_string();
        if !statement.starts_with("from ") && !statement.starts_with("import ") {
            continue;
        }
        while statement.contains('(') && !statement.contains(')') {
            let Some((_, more)) = lines.next() else { break };
            statement.push_str(more.split('#').next().unwrap_or_default());
        }
        let statement = statement.replace(['(', ')'], " ");
        let mut add = |target: String| out.push(Import { target, line: n + 1, late });
        if let Some(list) = statement.strip_prefix("import ") {
            list.split(',').for_each(|m| add(plain(m).to_string()));
        } else if let Some((source, list)) = statement.strip_prefix("from ").and_then(|s| s.split_once(" import ")) {
            match absolute(source.trim(), name, package) {
                None => add(source.trim().to_string()),
                Some(source) => {
                    for item in list.split(',').map(plain).filter(|s| !s.is_empty()) {
                        let inner = format!("{source}.{item}");
                        add(if names.contains(&inner) { inner } else { source.clone() });
                    }
                }
            }
        }
    }
    // A list of names from one place is one import.
    out.dedup_by(|a, b| a.target == b.target && a.line == b.line);
    out
}

/// The name before `as`.
fn plain(item: &str) -> &str {
    item.split_whitespace().next().unwrap_or_default()
}

/// The module that `source` names in the package, or None where it lies outside.
fn absolute(source: &str, name: &str, package: bool) -> Option<String> {
    let dots = source.chars().take_while(|c| *c == '.').count();
    if dots == 0 {
        return (source == "ferrax" || source.starts_with("ferrax.")).then(|| source.to_string());
    }
    let mut parts: Vec<&str> = name.split('.').collect();
    for _ in usize::from(package)..dots {
        parts.pop();
    }
    parts.extend(source[dots..].split('.').filter(|s| !s.is_empty()));
    Some(parts.join("."))
}

/// One cycle of imports, if there is any, by depth-first search.
fn ring(modules: &Modules) -> Option<Vec<String>> {
    fn walk<'a>(
        at: &'a str,
        modules: &'a Modules,
        path: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|m| *m == at) {
            return Some(path[start..].iter().copied().chain([at]).map(String::from).collect());
        }
        if !done.insert(at) {
            return None;
        }
        path.push(at);
        let found =
            modules.get(at).and_then(|(_, imports)| imports.iter().find_map(|i| walk(&i.target, modules, path, done)));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    modules.keys().find_map(|m| walk(m, modules, &mut Vec::new(), &mut done))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: format!("python/ferrax/{path}"), text: (*text).into() })
            .collect();
        python_imports_point_down(&files)
    }

    #[test]
    fn an_import_that_points_up_is_refused() {
        let files =
            [("lax/_loops.py", "from ..numpy._joining import stack\n"), ("numpy/_joining.py", "from ..lax import x\n")];
        let found = complaints(&[&files[..], &[("lax/__init__.py", "")]].concat());
        assert_eq!(
            found,
            [
                "python/ferrax/lax/_loops.py:1: ferrax.lax._loops must not import ferrax.numpy._joining, of a higher layer (numpy)"
            ]
        );
        assert!(complaints(&files[1..]).is_empty());
    }

    #[test]
    fn a_ring_is_refused_wherever_its_imports_stand() {
        let files = [
            ("numpy/_a.py", "from . import (\n    _b,\n)\n"),
            ("numpy/_b.py", "from ._c import f\n"),
            ("numpy/_c.py", "from ._a import g\n"),
        ];
        assert_eq!(
            complaints(&files),
            [
                "python/ferrax: a ring of imports: ferrax.numpy._a -> ferrax.numpy._b -> ferrax.numpy._c -> ferrax.numpy._a"
            ]
        );
        assert!(complaints(&files[..2]).is_empty());
    }

    #[test]
    fn imports_for_type_checkers_may_point_up() {
        let text = "if TYPE_CHECKING:\n    from ..numpy import (\n        x,\n    )\n\n    from ..numpy._joining import stack\n";
        let found = complaints(&[("lax/_loops.py", text), ("numpy/_joining.py", ""), ("numpy/__init__.py", "")]);
        assert!(found.is_empty(), "{found:?}");
        let found = complaints(&[
            ("lax/_loops.py", &format!("{text}from ..numpy._joining import stack\n")),
            ("numpy/_joining.py", ""),
        ]);
        assert_eq!(found.len(), 1);
    }
    #[test]
    fn a_function_imports_only_what_may_come_late() {
        let text = "def f():\n    \"\"\"from . import x\"\"\"\n    import ml_dtypes\n    import warnings\n    from ._joining import g\n";
        let found = complaints(&[("numpy/_a.py", text), ("numpy/_joining.py", "")]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains(":4: a function imports warnings")
                && found[1].contains(":5: a function imports ferrax.numpy._joining")
        );
    }

    #[test]
    fn a_private_module_is_in_a_folder_that_has_a_layer() {
        assert!(complaints(&[("_new.py", "")])[0].contains("is in no folder"));
        assert!(complaints(&[("_new/a.py", "")])[0].contains("is in no folder"));
        assert!(complaints(&[("_base/new.py", "")]).is_empty());
    }

    #[test]
    fn a_test_is_in_the_folder_of_its_layer() {
        let file = |path: &str| File { path: path.into(), text: String::new() };
        let kept = ["tests/trees/test_a.py", "tests/numpy/test_b.py", "tests/cpu/test_c.py", "tests/conftest.py"];
        assert!(tests_mirror_the_package(&kept.map(file)).is_empty());
        assert_eq!(tests_mirror_the_package(&["tests/test_a.py", "tests/other/test_b.py"].map(file)).len(), 2);
    }

    #[test]
    fn a_public_module_has_the_layer_of_what_it_imports() {
        let public = ("shapes.py", "from .lax._loops import f\n");
        let below = ("_trees/a.py", "from ..shapes import f\n");
        let found = complaints(&[public, below, ("lax/_loops.py", "")]);
        assert_eq!(
            found,
            ["python/ferrax/_trees/a.py:1: ferrax._trees.a must not import ferrax.shapes, of a higher layer (lax)"]
        );
        assert!(complaints(&[public, ("numpy/_a.py", "from ..shapes import f\n"), ("lax/_loops.py", "")]).is_empty());
    }
}
