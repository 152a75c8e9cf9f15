//! The extension module `ferrax._core`, built by cargo and copied beside the Python sources, and the wheel.
//!
//! Invariant: the file in `python/ferrax` is the one of the last build, and the only one there. It is replaced by
//! renaming, because a running process may have the old one mapped.

use std::fs;
use std::io::{Cursor, copy};
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use crate::python::Venv;
use crate::shell::{Res, fail, root};

const INSTALLED: &str = if cfg!(windows) { "_core.pyd" } else { "_core.so" };

/// Builds `selection` (cargo's arguments, which must cover `ferrax-python`) and installs the module.
pub fn build(venv: &Venv, profile: &str, selection: &[&str]) -> Res {
    venv.cargo().args(&["build", "--profile", profile]).args(selection).go()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let built = if cfg!(windows) {
        "ferrax_core.dll"
    } else if cfg!(target_os = "macos") {
        "libferrax_core.dylib"
    } else {
        "libferrax_core.so"
    };
    let fresh = fresh_path()?;
    let built = target.join(profile).join(built);
    fs::copy(&built, &fresh).map_err(|e| format!("{}: {e}", built.display()))?;
    install(&fresh)
}

/// Builds a release wheel into `dist/`, for this machine.
pub fn wheel(venv: &Venv) -> Res<PathBuf> {
    wheel_by(venv, &[])
}

/// Builds a release wheel into `dist/` for any machine of this system and processor. On Linux zig links it, against the C library of
/// manylinux2014, and auditwheel looks at what it asks for.
pub fn portable_wheel(venv: &Venv) -> Res<PathBuf> {
    if !cfg!(target_os = "linux") {
        return wheel(venv);
    }
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let built = wheel_by(venv, &["--zig", "--compatibility", "manylinux2014", "--target", &target])?;
    let audit = venv.run(&["-m", "auditwheel", "show", built.to_str().expect("UTF-8 path")]).read()?;
    println!("{}", audit.trim());
    // the name says which policy it was built for; the audit, which one it keeps
    let policy = audit.split("following platform tag:").nth(1).unwrap_or("");
    if policy.contains("manylinux_2_17") { Ok(built) } else { fail("the wheel asks for more than manylinux2014 has") }
}

/// Compresses the files of a wheel as far as deflate can be: that takes a minute, and saves a twentieth.
pub fn compress(wheel: &Path) -> Res {
    let error = |e: &dyn std::fmt::Display| format!("{}: {e}", wheel.display());
    let bytes = fs::read(wheel).map_err(|e| error(&e))?;
    let mut from = ZipArchive::new(Cursor::new(bytes)).map_err(|e| error(&e))?;
    let mut to = ZipWriter::new(Cursor::new(vec![]));
    for k in 0..from.len() {
        let mut file = from.by_index(k).map_err(|e| error(&e))?;
        let options = SimpleFileOptions::default()
            .compression_level(Some(ZOPFLI))
            .last_modified_time(file.last_modified().unwrap_or_default())
            .unix_permissions(file.unix_mode().unwrap_or(0o644));
        let name = file.name().map_err(|e| error(&e))?.into_owned();
        to.start_file(name, options).map_err(|e| error(&e))?;
        copy(&mut file, &mut to).map_err(|e| error(&e))?;
    }
    let smaller = to.finish().map_err(|e| error(&e))?.into_inner();
    fs::write(wheel, smaller).map_err(|e| error(&e))
}

/// Levels from 10 on are iterations of zopfli; more of them save nothing to speak of.
const ZOPFLI: i64 = 14;

fn wheel_by(venv: &Venv, how: &[&str]) -> Res<PathBuf> {
    let dist = root().join("dist");
    let _ = fs::remove_dir_all(&dist);
    // maturin looks for zig by the Python that it finds on the path
    let folder = venv.python().parent().map(Path::to_path_buf).into_iter();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(folder.chain(std::env::split_paths(&path))).map_err(|e| e.to_string())?;
    venv.run(&["-m", "maturin", "build", "--release", "--locked", "--out", "dist", "--interpreter"])
        .args(&[venv.python().to_str().expect("UTF-8 path")])
        .args(how)
        .env("PATH", path)
        .go()?;
    let mut files = fs::read_dir(&dist).map_err(|e| e.to_string())?.flatten();
    match files.next() {
        Some(file) => Ok(file.path()),
        None => fail("maturin left no wheel in dist/"),
    }
}

/// Installs the module that a wheel holds, so that it can be used from the work tree.
pub fn install_from_wheel(venv: &Venv, wheel: &Path) -> Res {
    let fresh = fresh_path()?;
    let code = "import sys, zipfile\n\
                z = zipfile.ZipFile(sys.argv[1])\n\
                name, = (n for n in z.namelist() if n.startswith('ferrax/_core.') and not n.endswith('.pyi'))\n\
                open(sys.argv[2], 'wb').write(z.read(name))";
    venv.run(&["-c", code, wheel.to_str().expect("UTF-8 path"), fresh.to_str().expect("UTF-8 path")]).read()?;
    install(&fresh)
}

fn fresh_path() -> Res<PathBuf> {
    let package = root().join("python/ferrax");
    fs::create_dir_all(&package).map_err(|e| e.to_string())?;
    Ok(package.join(format!("{INSTALLED}.new")))
}

/// A module with a longer suffix, as maturin leaves it, would be imported in place of ours: it goes.
fn install(fresh: &Path) -> Res {
    let package = root().join("python/ferrax");
    for entry in fs::read_dir(&package).map_err(|e| e.to_string())?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("_core.") && (name.ends_with(".so") || name.ends_with(".pyd")) && name != INSTALLED {
            fs::remove_file(entry.path()).map_err(|e| e.to_string())?;
        }
    }
    fs::rename(fresh, package.join(INSTALLED)).map_err(|e| e.to_string())
}
