//! Building the test programs with cargo, and the tests they hold.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One test of one test program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TestCase {
    /// The package's name, `jackdaw-storage`.
    pub(super) package: String,
    /// `lib`, `bin NAME` or the name of the file under `tests/`.
    pub(super) target: String,
    /// The test's path inside its program, `page::header::tests::round_trip`.
    pub(super) name: String,
    /// Whether it is marked `#[ignore]`: run by hand only.
    pub(super) ignored: bool,
    /// The test program.
    pub(super) program: PathBuf,
    /// The package's folder, in which tests run.
    pub(super) directory: PathBuf,
}

impl TestCase {
    /// The name it is reported under.
    pub(super) fn id(&self) -> String {
        format!("{} {} {}", self.package, self.target, self.name)
    }

    /// Whether it says that it is slow: its file, or a module or function on its path, is named `slow` or `slow_...`.
    pub(super) fn is_slow(&self) -> bool {
        let says_so = |part: &str| part == "slow" || part.starts_with("slow_");
        says_so(&self.target) || self.name.split("::").any(says_so)
    }

    /// The process that runs this test alone.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["--exact", &self.name, "--nocapture", "--test-threads=1"]);
        // What cargo promises to a test: it starts in its package's folder.
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command.env("CARGO_PKG_NAME", &self.package).env("RUST_BACKTRACE", "1");
        command
    }

    /// What to type to run it again.
    pub(super) fn replay(&self) -> String {
        let target = match self.target.as_str() {
            "lib" => "--lib".to_owned(),
            target if target.starts_with("bin ") => format!("--{target}"),
            target => format!("--test {target}"),
        };
        format!("cargo test -p {} {target} -- --exact {}", self.package, self.name)
    }
}

/// Builds the tests of the packages (of all default members when there are none given) and lists them.
pub(super) fn test_cases(root: &Path, packages: &[String]) -> Result<Vec<TestCase>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    for package in packages {
        cargo.args(["-p", package]);
    }
    let output = cargo.stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let mut cases = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).with_context(|| format!("cargo said {line:?}"))?;
        if let Some(program) = test_program(&message) {
            let tests = list(&program, &["--list"])?;
            let ignored: HashSet<_> = list(&program, &["--list", "--ignored"])?.into_iter().collect();
            cases.extend(tests.into_iter().map(|name| TestCase {
                ignored: ignored.contains(&name),
                name,
                ..program.clone()
            }));
        }
    }
    Ok(cases)
}

/// A test program, as a test without a name, if this message of cargo speaks of one.
fn test_program(message: &Value) -> Option<TestCase> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let name = message["target"]["name"].as_str()?;
    let target = match message["target"]["kind"][0].as_str()? {
        "lib" => "lib".to_owned(),
        "bin" => format!("bin {name}"),
        _ => name.to_owned(),
    };
    let package = package_name(message["package_id"].as_str()?)?;
    let program = message["executable"].as_str()?.into();
    Some(TestCase { package, target, program, directory, ..TestCase::default() })
}

/// The name in a package id, which is `URL#NAME@VERSION`, or `URL/NAME#VERSION` when the folder has the package's name.
fn package_name(id: &str) -> Option<String> {
    let (url, fragment) = id.rsplit_once('#')?;
    match fragment.split_once('@') {
        Some((name, _)) => Some(name.to_owned()),
        None => url.rsplit('/').next().map(str::to_owned),
    }
}

/// The names that a test program lists.
fn list(program: &TestCase, arguments: &[&str]) -> Result<Vec<String>> {
    let mut command = Command::new(&program.program);
    command.args(arguments).args(["--format", "terse"]).current_dir(&program.directory);
    let output = command.output().with_context(|| format!("cannot run {}", program.program.display()))?;
    if !output.status.success() {
        bail!("{} does not list its tests: it ended with {}", program.program.display(), output.status);
    }
    Ok(parse_list(&String::from_utf8_lossy(&output.stdout)))
}

/// Lines are `NAME: test`; benches, which end in `: bench`, are no tests.
fn parse_list(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_listing_gives_tests_and_no_benches() {
        assert_eq!(parse_list("a::b: test\nc: bench\nd: test\n"), ["a::b", "d"]);
    }

    #[test]
    fn the_package_is_read_from_both_forms_of_id() {
        assert_eq!(
            package_name("path+file:///x/crates/storage#jackdaw-storage@0.1.0").unwrap(),
            "jackdaw-storage"
        );
        assert_eq!(package_name("path+file:///x/xtask#0.1.0").unwrap(), "xtask");
        assert_eq!(package_name("nothing"), None);
    }

    #[test]
    fn a_test_program_is_told_from_other_artifacts() {
        let message = json!({
            "reason": "compiler-artifact",
            "package_id": "path+file:///x/crates/storage#jackdaw-storage@0.1.0",
            "manifest_path": "/x/crates/storage/Cargo.toml",
            "target": {"kind": ["test"], "name": "kill"},
            "profile": {"test": true},
            "executable": "/x/target/debug/deps/kill-1",
        });
        let program = test_program(&message).unwrap();
        assert_eq!((program.package.as_str(), program.target.as_str()), ("jackdaw-storage", "kill"));
        assert_eq!(program.directory, Path::new("/x/crates/storage"));
        let mut library = message.clone();
        library["profile"]["test"] = false.into();
        assert_eq!(test_program(&library), None);
    }

    #[test]
    fn the_replay_line_names_the_target() {
        let case = |target: &str| TestCase {
            package: "p".into(),
            target: target.into(),
            name: "n".into(),
            ..TestCase::default()
        };
        assert_eq!(case("lib").replay(), "cargo test -p p --lib -- --exact n");
        assert_eq!(case("bin jackdaw").replay(), "cargo test -p p --bin jackdaw -- --exact n");
        assert_eq!(case("kill").replay(), "cargo test -p p --test kill -- --exact n");
    }
}
