//! `docs/tutorials/migrate-one-client.md`, with a running demo.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::{blocks, page, plain_lines, shown, words};
use crate::support::{Proxy, becomes, eventually, program, run_to_end};

/// The number of calls of the page's script.
const CALLS: u32 = 100;

struct Walk {
    demo: Proxy,
    folder: PathBuf,
}

impl Walk {
    fn start() -> Walk {
        let temporary = tempfile::tempdir().unwrap();
        let addresses = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let mut command = program(&["demo", "--no-traffic"]);
        command.args(addresses).env("TMPDIR", temporary.path());
        let demo = Proxy::launch(command, temporary);
        let printed = demo.printed("Stop with Ctrl-C.");
        let (_, after) = printed.split_once("The configuration is in ").unwrap();
        let (folder, _) = after.split_once(". An edit").unwrap();
        let folder = PathBuf::from(folder);
        Walk { demo, folder }
    }

    /// Makes the calls of the page's script, and returns what it prints of their responses.
    fn calls(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for device in 1..=CALLS {
            let device = device.to_string();
            let headers = [("x-client-id", "mobile"), ("x-device-id", &*device)];
            let response = self.demo.rest("POST", "/mcp/v1/tools/list", &headers, "");
            let (_, after) = response.text().split_once("\"List ").unwrap();
            let (text, _) = after.split_once('"').unwrap();
            *counts.entry(format!("\"List {text}\"")).or_default() += 1;
        }
        let lines = counts.iter().map(|(text, count)| format!("{count} {text}"));
        lines.collect()
    }

    /// Returns what a command prints.
    fn run(&self, command: &str) -> Vec<String> {
        let words = words(command);
        let admin = format!("http://{}", self.demo.admin());
        let mut arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        arguments.extend(["--admin", &*admin]);
        let ended = run_to_end(program(&arguments));
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
        steady(ended.output.lines())
    }

    /// The number of calls that have a verdict.
    fn compared(&self) -> f64 {
        let verdicts = self.demo.metrics();
        let labels = ["route", "client", "side", "stage", "verdict"];
        let verdicts = verdicts.table("dualgauge_verdicts_total", &labels);
        verdicts.values().sum()
    }
}

/// Lines without numbers, hashes and the state of a guard, which depends on the time.
fn steady<'l>(lines: impl IntoIterator<Item = &'l str>) -> Vec<String> {
    let lines = plain_lines(lines).into_iter().map(|line| {
        let line = match line.split_once(" guard: ") {
            Some((before, after)) => format!("{before} {}", after.rsplit(' ').next().unwrap()),
            None => line,
        };
        let words = line.split(' ').filter(|word| !word.starts_with('#'));
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect()
}

#[test]
fn the_commands_of_the_tutorial_print_what_the_page_shows() {
    let text = page("tutorials/migrate-one-client.md");
    let walk = Walk::start();
    let mut commands = 0;
    let mut is_shadow = false;
    for block in blocks(&text) {
        match block.kind {
            "toml" => {
                let file = walk.folder.join("dualgauge.toml");
                let whole = fs::read_to_string(&file).unwrap() + "\n" + block.text;
                fs::write(file, whole).unwrap();
            }
            "console" => {
                for wanted in shown(block.text) {
                    commands += 1;
                    let command = wanted.command.as_str();
                    if command == "sh calls.sh" {
                        let before = walk.compared();
                        let lines = wanted.output.iter().map(|line| line.trim().to_owned());
                        assert_eq!(walk.calls(), lines.collect::<Vec<_>>(), "{commands}");
                        if is_shadow {
                            becomes(|| walk.compared(), &(before + f64::from(CALLS)));
                        }
                        continue;
                    }
                    if command.contains("flags set") {
                        is_shadow = command.contains(" shadow ");
                    }
                    let output = steady(wanted.output.iter().copied());
                    match command.contains("flags") {
                        true => assert_eq!(walk.run(command), output),
                        false => {
                            eventually(command, || (walk.run(command) == output).then_some(()))
                        }
                    }
                }
            }
            // The start of the demo, and the script of the calls.
            "sh" => {}
            other => panic!("unexpected block of `{other}`"),
        }
    }
    assert!(commands > 15, "{commands}");
}
