//! `docs/how-to/migrate-clients.md`, from the first check to the deleted route.

use std::fs;

use super::{Curl, Shown, blocks, page, plain, plain_lines, shown, words};
use crate::scene::{self, Called};
use crate::support::{Message, Proxy, Upstream, eventually, program, run_to_end};

const ITEM: &str = r#"{"id":"7","price":1.10}"#;

/// Both servers, and the proxy once there is a configuration.
struct Walk {
    servers: [Upstream; 2],
    folder: tempfile::TempDir,
}

impl Walk {
    fn begin() -> Walk {
        let old = Upstream::serving(|_| scene::json(ITEM));
        let new = Upstream::serving(|request| {
            let id = Called::of(request).id().to_owned();
            scene::json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ITEM}}}"#))
        });
        Walk {
            servers: [old, new],
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A file of the guide, before the servers of this test.
    fn write(&self, text: &str) {
        let (name, _) = text.split_once('\n').unwrap_or((text, ""));
        let name = name.strip_prefix("# ").unwrap();
        let [old, new] = [&self.servers[0], &self.servers[1]].map(|one| one.address().to_string());
        let text = text
            .replace("127.0.0.1:9001", &old)
            .replace("127.0.0.1:9002", &new);
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// What a command of the program prints.
    fn run(&self, words: &[String], proxy: Option<&Proxy>) -> Vec<String> {
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let admin = proxy.map(|proxy| format!("http://{}", proxy.admin()));
        if !arguments.contains(&"--config") {
            arguments.extend(["--admin", admin.as_deref().unwrap()]);
        }
        let mut command = program(&arguments);
        command.current_dir(self.folder.path());
        let ended = run_to_end(command);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        plain_lines(ended.output.lines().chain(ended.errors.lines()))
    }
}

/// A call of each of forty devices.
fn traffic(proxy: &Proxy) {
    for device in 0..40 {
        let device = format!("d{device}");
        let headers = [("x-client-id", "ios-1"), ("x-device-id", &*device)];
        proxy.rest("GET", "/items/7", &headers, "");
    }
}

/// Head and body of an answer, as lines.
fn lines(answer: &Message) -> Vec<String> {
    let fields = answer.head.sorted();
    let fields = fields
        .iter()
        .map(|(name, value)| plain(&format!("{}: {value}", name.to_ascii_lowercase())));
    let start = plain(&answer.head.start);
    std::iter::once(start).chain(fields).collect()
}

fn curl(proxy: &Proxy, words: &[String], wanted: &Shown<'_>) {
    let (words, prefix) = match words.iter().position(|word| word == "|") {
        Some(bar) => (&words[..bar], words[bar + 2].strip_prefix('^')),
        None => (words, None),
    };
    let curl = Curl::read(words);
    let (port, target) = curl.target();
    let wanted = plain_lines(wanted.output.iter().copied());
    let headers: Vec<_> = curl
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    eventually(&format!("{wanted:?}"), || {
        let answer = match port {
            "9090" => proxy.ask(curl.method(), target, &curl.body),
            _ => proxy.rest(curl.method(), target, &headers, &curl.body),
        };
        let got = match prefix {
            Some(prefix) => {
                let lines = answer.text().lines();
                plain_lines(lines.filter(|line| line.starts_with(prefix)))
            }
            None => lines(&answer),
        };
        let all = wanted.iter().all(|line| got.contains(line));
        // Of a page, what is shown is all that there is.
        (all && (prefix.is_none() || got.len() == wanted.len())).then_some(())
    });
}

#[test]
fn the_commands_of_the_guide_move_a_client_and_print_what_stands_there() {
    let text = page("how-to/migrate-clients.md");
    let walk = Walk::begin();
    let mut proxy: Option<Proxy> = None;
    let mut commands = 0;
    for block in blocks(&text) {
        match block.kind {
            "toml" => walk.write(block.text),
            "console" => {
                for wanted in shown(block.text) {
                    commands += 1;
                    let words = words(&wanted.command);
                    let output = plain_lines(wanted.output.iter().copied());
                    match words[0].as_str() {
                        "curl" => curl(proxy.as_ref().unwrap(), &words[1..], &wanted),
                        _ if words[1] == "flags" && words.len() > 2 => {
                            assert_eq!(walk.run(&words[1..], proxy.as_ref()), output);
                        }
                        _ => eventually(&wanted.command, || {
                            (walk.run(&words[1..], proxy.as_ref()) == output).then_some(())
                        }),
                    }
                }
                let running = proxy.get_or_insert_with(|| {
                    let mut command =
                        program(&["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
                    command.args(["--config", "dualgauge.toml"]);
                    command.current_dir(walk.folder.path());
                    Proxy::launch(command, tempfile::tempdir().unwrap())
                });
                if commands < 15 {
                    traffic(running);
                }
            }
            // An example of what this walk does not meet.
            "text" => {}
            other => panic!("no block of `{other}` is expected in this guide"),
        }
    }
    assert!(commands >= 15, "{commands}");
    // Who calls by JSON-RPC is served without the route.
    let answer = proxy
        .unwrap()
        .rpc(r#"{"jsonrpc":"2.0","id":1,"method":"items/read","params":{"id":"7"}}"#);
    assert_eq!(answer.json()["result"]["id"], "7");
}
