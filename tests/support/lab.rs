//! A place of its own for each test: scratch folder, HOME, temporary folder, PATH.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::run::Run;
use super::{command, wait_until};

/// A scratch folder (`$D` for the commands in it) and the programs that are run there.
pub struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    /// Makes the folder, with `home`, `tmp`, and a `bin` that holds `retryx`.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("retryx-test-").tempdir().expect("a scratch folder");
        let lab = Self { folder };
        for name in ["home", "tmp", "bin"] {
            fs::create_dir(lab.path(name)).expect("a folder");
        }
        std::os::unix::fs::symlink(Self::binary(), lab.path("bin/retryx")).expect("a link");
        lab
    }

    /// The binary under test.
    pub fn binary() -> &'static Path {
        assert_cmd::cargo::cargo_bin!("retryx")
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs retryx with these options, events included, and then whatever the builder
    /// gets.
    pub fn run(&self, options: &str) -> Run<'_> {
        Run::new(self, Self::binary()).with_events().words(options)
    }

    /// Runs retryx with these words and nothing added to them.
    pub fn bare(&self, words: &str) -> Run<'_> {
        Run::new(self, Self::binary()).words(words)
    }

    /// Runs a script with `sh`, which finds `retryx` in its PATH.
    pub fn shell(&self, script: &str) -> Run<'_> {
        self.program("sh").args(["-c", script])
    }

    /// Runs a script with `bash`.
    pub fn bash(&self, script: &str) -> Run<'_> {
        self.program("bash").args(["-c", script])
    }

    /// Runs some other program.
    pub fn program(&self, name: impl AsRef<Path>) -> Run<'_> {
        Run::new(self, name.as_ref())
    }

    /// A program with the environment of this place and nothing else.
    pub fn prepare(&self, program: &Path) -> Command {
        let mut command = command(program);
        let bin = self.path("bin");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", bin.display());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("D", self.folder.path())
            .env("R", Self::binary())
            .env("LC_ALL", "C")
            .current_dir(self.folder.path());
        command
    }

    /// Writes a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).expect("a scratch file");
        path
    }

    /// Makes an executable file. Another process writes it: a fork of this one by another
    /// test would hold it open for writing for a moment, and it could not be executed then.
    pub fn executable(&self, name: &str, content: &str) -> PathBuf {
        let source = self.write(&format!("{name}.source"), content);
        let path = self.path(name);
        self.tool("install", &["-m", "755", &source.to_string_lossy(), &path.to_string_lossy()]);
        path
    }

    /// Runs a program that must succeed, and returns what it printed.
    pub fn tool(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.prepare(Path::new(program)).args(arguments).stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What a file holds; nothing where it is missing.
    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// The lines of a file.
    pub fn lines(&self, name: &str) -> Vec<String> {
        self.read(name).lines().map(str::to_owned).collect()
    }

    /// Waits until a file exists.
    #[track_caller]
    pub fn await_file(&self, name: &str) {
        wait_until(&format!("{name} exists"), || self.path(name).exists());
    }

    /// Waits until a file has that many whole lines, and returns them.
    #[track_caller]
    pub fn await_lines(&self, name: &str, count: usize) -> Vec<String> {
        wait_until(&format!("{name} has {count} lines"), || {
            self.read(name).bytes().filter(|&byte| byte == b'\n').count() >= count
        });
        self.lines(name)
    }

    /// Waits until a file holds a whole line with a number, such as a process's, and reads it.
    #[track_caller]
    pub fn await_number(&self, name: &str) -> i32 {
        let lines = self.await_lines(name, 1);
        lines[0].trim().parse().expect("a number in the file")
    }
}
