//! Running other programs: each command is printed before it runs and ends the task when it fails.
//!
//! ```text
//! Cmd::new("cargo").args(&["fmt", "--check"]).go()?;
//! ```

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub type Res<T = ()> = Result<T, String>;

pub fn fail<T>(message: impl Into<String>) -> Res<T> {
    Err(message.into())
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_path_buf()
}

pub struct Cmd(Command);

impl Cmd {
    pub fn new(program: impl AsRef<OsStr>) -> Cmd {
        let mut command = Command::new(program);
        command.current_dir(root());
        Cmd(command)
    }

    pub fn args<S: AsRef<str>>(mut self, args: &[S]) -> Cmd {
        self.0.args(args.iter().map(AsRef::as_ref));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Cmd {
        self.0.env(name, value);
        self
    }

    fn text(&self) -> String {
        let program = Path::new(self.0.get_program());
        let program = program.strip_prefix(root()).unwrap_or(program).to_string_lossy().into_owned();
        std::iter::once(program)
            .chain(self.0.get_args().map(|a| a.to_string_lossy().into_owned()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Runs with the terminal's output; an error unless it exits with 0.
    pub fn go(mut self) -> Res {
        let text = self.text();
        eprintln!("$ {text}");
        match self.0.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => fail(format!("{text}: {status}")),
            Err(error) => fail(format!("{text}: {error}")),
        }
    }

    /// Standard output of a silent run.
    pub fn read(mut self) -> Res<String> {
        let text = self.text();
        let out = self.0.stderr(Stdio::piped()).output().map_err(|e| format!("{text}: {e}"))?;
        if !out.status.success() {
            return fail(format!("{text}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)));
        }
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }
}

/// Whether the command runs and exits with 0; prints nothing.
pub fn quiet(mut cmd: Cmd) -> bool {
    cmd.0.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}
