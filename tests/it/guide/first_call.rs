//! The route table of `docs/tutorials/first-call.md`, followed in an empty folder before the sample server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;

use super::{Curl, Shown, blocks, page, shown, words};
use crate::support::{Proxy, eventually, program, run_to_end};

/// `dualgauge sample`, killed on drop.
struct Sample {
    child: Child,
    address: String,
}

impl Sample {
    fn start() -> Sample {
        let mut child = program(&["sample", "--listen", "127.0.0.1:0"])
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("serving http://").unwrap();
        let address = address.to_owned();
        Sample { child, address }
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a block of TOML to the file that its first line names, or adds it there.
fn write(text: &str, folder: &Path, sample: &Sample) {
    let (first, text) = text.split_once('\n').unwrap();
    let name = first.strip_prefix("# ").unwrap();
    let (name, before) = match name.strip_prefix("add to ") {
        Some(name) => (name, fs::read_to_string(folder.join(name)).unwrap()),
        None => (name, format!("{first}\n")),
    };
    let text = text.replace("127.0.0.1:9001", &sample.address);
    fs::write(folder.join(name), format!("{before}{text}\n")).unwrap();
}

/// Runs a command of the page and compares its output.
fn follow(wanted: &Shown<'_>, folder: &Path, (proxy, sample): (Option<&Proxy>, &Sample)) {
    let words = words(&wanted.command);
    if words[0] == "curl" {
        let curl = Curl::read(&words[1..]);
        let (_, target) = curl.target();
        return eventually(&format!("{wanted:?}"), || {
            let response = proxy.unwrap().rest(curl.method(), target, &[], "");
            (response.text() == wanted.output.join("\n")).then_some(())
        });
    }
    let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let mut command = program(&arguments);
    command.current_dir(folder);
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let printed = ended.output.replace(&sample.address, "127.0.0.1:9001");
    for line in printed.lines() {
        assert!(wanted.output.contains(&line), "{line:?}: {wanted:?}");
    }
    for &line in &wanted.output {
        let is_printed = printed
            .lines()
            .chain(ended.errors.lines())
            .any(|l| l == line);
        assert!(is_printed, "{line:?}: {printed}\n{}", ended.errors);
    }
}

#[test]
fn the_route_table_of_the_first_tutorial_does_what_the_page_shows() {
    let text = page("tutorials/first-call.md");
    let (_, part) = text
        .split_once("\n## Write your own route table\n")
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sample = Sample::start();
    let mut proxy = None;
    let mut commands = 0;
    for block in blocks(part) {
        match (block.kind, block.text) {
            ("toml", text) => write(text, folder.path(), &sample),
            ("sh", "dualgauge sample") => {}
            ("sh", "dualgauge run --config dualgauge.toml") => {
                let mut run = program(&["run", "--config", "dualgauge.toml"]);
                run.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
                run.current_dir(folder.path());
                proxy = Some(Proxy::launch(run, tempfile::tempdir().unwrap()));
            }
            ("console", text) => {
                for wanted in shown(text) {
                    follow(&wanted, folder.path(), (proxy.as_ref(), &sample));
                    commands += 1;
                }
            }
            (kind, text) => panic!("`{kind}` is out of place in this part: {text}"),
        }
    }
    assert_eq!(commands, 5);
}
