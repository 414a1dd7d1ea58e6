//! The manual pages, with mandoc and man.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{DUALGAUGE, files, run, succeed};

/// Returns the names of all commands, joined by `-`, from the help pages.
fn commands(of: &[&str]) -> Vec<String> {
    let mut help = Command::new(DUALGAUGE);
    let help = succeed(help.args(of).arg("--help"));
    let name = ["dualgauge"].iter().chain(of).copied();
    let mut found = vec![name.collect::<Vec<_>>().join("-")];
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in lines.take_while(|line| !line.is_empty()) {
        let entry = line.strip_prefix("  ").unwrap();
        let subcommand = entry.split_whitespace().next().unwrap();
        if !entry.starts_with(' ') && subcommand != "help" {
            found.extend(commands(&[of, &[subcommand]].concat()));
        }
    }
    found
}

fn written(folder: &Path) {
    let mut man = Command::new(DUALGAUGE);
    succeed(man.args(["man", "--write"]).arg(folder));
}

#[test]
fn each_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    written(&folder.path().join("man1"));
    let pages = files(folder.path(), "1");
    let pages = pages
        .iter()
        .map(|page| page.file_stem().unwrap().to_str().unwrap());
    let pages: BTreeSet<String> = pages.map(str::to_owned).collect();
    let expected = BTreeSet::from_iter(commands(&[]));
    assert!(expected.contains("dualgauge-flags-set"));
    assert_eq!(pages, expected);
}

#[test]
#[ignore = "needs .ci/install-user-tools"]
fn linters_and_viewers_read_each_page() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let pages = files(folder.path(), "1");
    let mut lint = Command::new("mandoc");
    let found = run(lint.args(["-T", "lint", "-W", "warning"]).args(&pages)).text;
    // The pages have no date, so that two builds are equal.
    let is_dateless = |line: &str| line.contains("missing date");
    assert_eq!(found.lines().find(|line| !is_dateless(line)), None);
    assert_eq!(found.lines().count(), pages.len());
    for page in &pages {
        let mut man = Command::new("man");
        man.args(["--warnings=w", "--local-file"]).arg(page);
        let man = man.env("MANWIDTH", "100").env("LC_ALL", "C.UTF-8");
        let shown = succeed(man);
        let stem = page.file_stem().unwrap().to_str().unwrap();
        let is_whole = shown.contains(&stem.to_uppercase()) && shown.contains("SEE ALSO");
        assert!(is_whole && !shown.contains("warning"), "{shown}");
    }
    let page = fs::read_to_string(folder.path().join("dualgauge-flags-set.1")).unwrap();
    assert!(
        page.contains("passthrough, shadow, verify, translate"),
        "{page}"
    );
}
