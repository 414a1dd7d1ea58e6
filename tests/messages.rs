//! Lists all texts that users read, so that they can be reviewed in one place: help pages, log messages, errors,
//! failures, configuration problems, and others (output of commands, problems of the admin API, help of metrics).
//!
//! The help pages come from the program; the other texts from string literals in the sources, outside of tests.

#![expect(
    clippy::unwrap_used,
    reason = "a program or a source that cannot be read fails the test"
)]

#[path = "messages/lexer.rs"]
mod lexer;
#[path = "messages/texts.rs"]
mod texts;

use std::process::Command;

use texts::{Kind, all};

/// Commands of the feature `demo` only.
const DEMO: [&str; 2] = ["demo", "sample"];

/// Returns the help page of a command.
fn page(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
        .args(command)
        .arg("--help")
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}");
    assert!(output.stderr.is_empty(), "{command:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the names of the subcommands on a help page, except the built-in `help`.
fn subcommands(page: &str) -> Vec<String> {
    let lines = page.lines().skip_while(|line| *line != "Commands:").skip(1);
    let entries = lines.take_while(|line| !line.is_empty());
    let names = entries.filter_map(|line| {
        let rest = line.strip_prefix("  ")?;
        let is_name = rest.starts_with(|c: char| c.is_ascii_lowercase());
        rest.split_whitespace().next().filter(|_| is_name)
    });
    let names = names.filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

/// Appends the help pages of a command and all its subcommands.
fn append_pages(command: &[String], pages: &mut String) {
    let page = page(command);
    let heading = ["dualgauge"].into_iter();
    let heading = heading.chain(command.iter().map(String::as_str));
    let heading = heading.collect::<Vec<_>>().join(" ");
    let is_demo = |line: &&str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        command.is_empty() && line.starts_with("  ") && DEMO.contains(&first)
    };
    let lines: Vec<_> = page.lines().filter(|line| !is_demo(line)).collect();
    *pages += &format!("=== {heading} --help ===\n\n{}\n\n", lines.join("\n"));
    for name in subcommands(&page) {
        if !DEMO.contains(&name.as_str()) {
            append_pages(&[command, &[name]].concat(), pages);
        }
    }
}

#[test]
fn all_help_pages() {
    let mut pages = String::new();
    append_pages(&[], &mut pages);
    insta::assert_snapshot!("help", pages);
}

#[cfg(feature = "demo")]
#[test]
fn all_help_pages_of_the_demo() {
    let mut pages = String::new();
    for name in DEMO {
        append_pages(&[name.to_owned()], &mut pages);
    }
    insta::assert_snapshot!("help_of_the_demo", pages);
}

/// Returns the texts of one kind in the files that `is_listed` selects, below the names of their files.
fn listed(kind: Kind, is_listed: fn(&str) -> bool) -> String {
    let mut list = String::new();
    for (file, texts) in all() {
        let mut lines = Vec::new();
        for text in texts.iter().filter(|text| text.kind == kind) {
            let shown = text.text.trim_end().replace('\n', "\n    ");
            let line = format!("  {}{shown}\n", text.label);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        if !lines.is_empty() && is_listed(&file) {
            list += &format!("{file}\n{}\n", lines.concat());
        }
    }
    assert!(!list.is_empty());
    list
}

#[test]
fn all_log_messages() {
    insta::assert_snapshot!("log", listed(Kind::Log, |_| true));
}

#[test]
fn all_errors() {
    insta::assert_snapshot!("errors", listed(Kind::Error, |_| true));
}

#[test]
fn all_failures() {
    insta::assert_snapshot!("failures", listed(Kind::Failure, |_| true));
}

#[test]
fn all_configuration_problems() {
    let is_configuration = |file: &str| file.starts_with("src/config/");
    insta::assert_snapshot!("configuration", listed(Kind::Other, is_configuration));
}

#[test]
fn all_other_texts() {
    let is_other = |file: &str| !file.starts_with("src/config/");
    insta::assert_snapshot!("other", listed(Kind::Other, is_other));
}
