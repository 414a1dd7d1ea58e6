//! The tutorials of `dualgauge mcp` and `dualgauge rest`: their commands are run, before servers as the pages describe
//! them, and print what the pages show.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Curl, blocks, page, plain, shown, words};
use crate::drafted::mcp_server_of;
use crate::scene::{answer, json as json_answer, json_with};
use crate::support::{Proxy, Upstream, program, run_to_end};

/// The addresses that the pages use, and those of the test.
struct Addresses<'a>(Vec<(&'a str, String)>);

impl Addresses<'_> {
    fn apply(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (page, own) in &self.0 {
            text = text.replace(page, own);
        }
        text
    }
}

/// A reader who follows a page in an empty folder.
struct Reader<'a> {
    folder: TempDir,
    addresses: Addresses<'a>,
    running: Option<Proxy>,
    followed: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(addresses: Vec<(&'a str, String)>) -> Reader<'a> {
        Reader {
            folder: tempfile::tempdir().unwrap(),
            addresses: Addresses(addresses),
            running: None,
            followed: Vec::new(),
        }
    }

    /// Follows the blocks of a page; files of other kinds are its documents.
    fn follow(&mut self, text: &str) {
        for block in blocks(text) {
            match block.kind {
                "console" => {
                    for example in shown(block.text) {
                        self.run(&example.command, Some(&example.output));
                    }
                }
                "sh" => {
                    for line in block.text.lines() {
                        self.run(line, None);
                    }
                }
                "yaml" => {
                    let text = self.addresses.apply(block.text);
                    fs::write(self.folder.path().join("api.yaml"), text).unwrap();
                }
                "json" => {
                    let entry: Value = serde_json::from_str(block.text).unwrap();
                    assert_eq!(entry["mcpServers"]["api"]["command"], "dualgauge");
                }
                // A program for another server, which the page compares with.
                "python" => {}
                kind => panic!("`{kind}` is out of place in this page"),
            }
        }
    }

    fn run(&mut self, command: &str, output: Option<&[&str]>) {
        // Nobody answers under these names.
        if command.contains("api.example") {
            return;
        }
        let words = words(&self.addresses.apply(command));
        self.followed.push(words[..2].join(" "));
        match (words[0].as_str(), words[1].as_str()) {
            ("curl", _) => self.curl(&words[1..], output),
            ("dualgauge", "check") => {
                let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                let mut command = program(&arguments);
                command.current_dir(self.folder.path());
                let ended = run_to_end(command);
                assert_eq!(ended.code, Some(0), "{ended:?}");
            }
            ("dualgauge", _) => self.serve(&words[1..], output),
            _ => panic!("{command}"),
        }
    }

    fn curl(&self, words: &[String], output: Option<&[&str]>) {
        let curl = Curl::read(words);
        let (_, target) = curl.target();
        let headers: Vec<(&str, &str)> = curl
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let running = self.running.as_ref().unwrap();
        let said = running.rest(curl.method(), target, &headers, &curl.body);
        match output {
            Some(output) => assert_eq!(said.text().trim_end(), output.join("\n").trim_end()),
            None => assert_eq!(said.status(), 200, "{said:?}"),
        }
    }

    /// Serves with a command, in place of the one before.
    fn serve(&mut self, words: &[String], output: Option<&[&str]>) {
        self.running = None;
        let words: Vec<&str> = words
            .iter()
            .map(|word| match word.as_str() {
                "0.0.0.0:8080" => "0.0.0.0:0",
                word => word,
            })
            .collect();
        let mut command = program(&words);
        command
            .current_dir(self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("API_KEY", "KEY");
        // `--listen` and a written address are from the page; all others are free ports.
        if words[0] == "run" {
            command
                .env("DUALGAUGE_LISTEN__ADDRESS", "127.0.0.1:0")
                .env("DUALGAUGE_ADMIN__ADDRESS", "127.0.0.1:0");
        } else if !words.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let proxy = Proxy::launch(command, tempfile::tempdir().unwrap());
        if words[0] != "run" {
            let printed = proxy.printed("Stop with Ctrl-C.");
            if let Some(output) = output {
                assert_eq!(steady(printed.lines()), steady(output.iter().copied()));
            }
        }
        self.running = Some(proxy);
    }
}

/// Lines without numbers and without the folder of the configuration.
fn steady<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let lines = lines.map(|line| match line.split_once("The configuration is in ") {
        Some(_) => "The configuration is in".to_owned(),
        None => plain(line),
    });
    lines.filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_tutorial_of_mcp_is_followed() {
    let library = Upstream::serving(|request| {
        let target = request.head.start.strip_suffix(" HTTP/1.1").unwrap();
        match target {
            "GET /books/1" => json_answer(r#"{"id":1,"title":"Dune"}"#),
            "DELETE /books/1" => answer("204 No Content", &[], ""),
            _ => json_with("404 Not Found", r#"{"detail":"no such book"}"#),
        }
    });
    let address = library.address().to_string();
    let mut reader = Reader::new(vec![("127.0.0.1:9001", address)]);
    reader.follow(&page("tutorials/rest-api-for-mcp.md"));
    let followed: Vec<&str> = reader.followed.iter().map(String::as_str).collect();
    assert_eq!(
        followed,
        [
            "dualgauge mcp",
            "curl -s",
            "curl -s",
            "dualgauge mcp",
            "dualgauge mcp",
            "dualgauge check",
            "dualgauge run"
        ]
    );
    assert!(Path::new(&reader.folder.path().join("api/tools.toml")).is_file());
}

#[test]
fn the_tutorial_of_rest_is_followed() {
    let number = json!({ "type": "integer" });
    let server = mcp_server_of(json!([
        {
            "name": "add",
            "title": "Add numbers",
            "inputSchema": { "type": "object", "properties": { "a": number, "b": number }, "required": ["a", "b"] },
            "annotations": { "readOnlyHint": true },
        },
        { "name": "fail", "inputSchema": { "type": "object" } },
    ]));
    let address = server.address().to_string();
    let mut reader = Reader::new(vec![("127.0.0.1:8000", address)]);
    reader.follow(&page("tutorials/mcp-server-as-rest.md"));
    let followed: Vec<&str> = reader.followed.iter().map(String::as_str).collect();
    assert_eq!(
        followed,
        [
            "dualgauge rest",
            "curl -s",
            "curl -s",
            "dualgauge rest",
            "curl -s",
            "dualgauge rest",
            "dualgauge check",
            "dualgauge run"
        ]
    );
}
