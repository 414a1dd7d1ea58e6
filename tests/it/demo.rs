//! `dualgauge demo`: what it prints is what works.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Message, Proxy, Wire, becomes, program, run_to_end};

/// The demo without its clients.
fn demo() -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    let mut command = demo_in(folder.path(), "127.0.0.1:0");
    command.arg("--no-traffic");
    Proxy::launch(command, folder)
}

#[test]
fn the_clients_show_a_difference_and_a_rollback() {
    let folder = tempfile::tempdir().unwrap();
    let demo = Proxy::launch(demo_in(folder.path(), "127.0.0.1:0"), folder);
    let printed = demo.printed("outage   over");
    let lines: Vec<&str> = printed.lines().collect();
    let has = |begin: &str| lines.iter().any(|line| line.starts_with(begin));
    assert!(
        has("shadow   the new server's response to `tools.list` differs at"),
        "{printed}"
    );
    assert!(has("outage   the new server stops responding"), "{printed}");
    assert!(
        has("guard    flag `mobile` rolled back to passthrough: "),
        "{printed}"
    );
    let flag = demo.ask("GET", "/api/v1/flags/mobile", "").json();
    assert!(flag["tripped"]["reason"].is_string(), "{flag}");
}

/// The demo, with a folder of the test as its place for temporary files.
fn demo_in(folder: &Path, listen: &str) -> Command {
    let mut command = program(&["demo", "--listen", listen, "--admin", "127.0.0.1:0"]);
    command.env("TMPDIR", folder);
    command
}

fn introduction(demo: &Proxy) -> String {
    demo.printed("Stop with Ctrl-C.")
}

/// Every printed command with the comment above it.
fn commands(printed: &str) -> Vec<(String, String)> {
    let whole = printed.replace("\\\n", " ");
    let (mut comment, mut commands) = (String::new(), Vec::new());
    for line in whole.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("# ") {
            comment = text.to_owned();
        } else if line.starts_with("curl ") {
            commands.push((comment.clone(), line.to_owned()));
        }
    }
    commands
}

/// The words of a command, as a shell takes them apart: blanks and single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// A request as curl makes it of its arguments; fails on any that is not known here.
struct Curl {
    method: String,
    url: String,
    headers: Vec<String>,
    body: String,
    grep: Option<String>,
}

impl Curl {
    fn parse(command: &str) -> Curl {
        let (command, grep) = match command.split_once(" | grep ") {
            Some((command, pattern)) => (command, Some(pattern.trim().to_owned())),
            None => (command, None),
        };
        let mut curl = Curl {
            method: String::new(),
            url: String::new(),
            headers: Vec::new(),
            body: String::new(),
            grep,
        };
        let mut words = words(command).into_iter();
        assert_eq!(words.next().as_deref(), Some("curl"));
        while let Some(word) = words.next() {
            match word.as_str() {
                "-s" => {}
                "-X" => curl.method = words.next().unwrap(),
                "-H" => curl.headers.push(words.next().unwrap()),
                "-d" => curl.body = words.next().unwrap(),
                url if url.starts_with("http://") => curl.url = word,
                other => panic!("curl {other:?} in {command}"),
            }
        }
        if curl.method.is_empty() {
            let method = if curl.body.is_empty() { "GET" } else { "POST" };
            curl.method = method.to_owned();
        }
        curl
    }

    fn run(&self) -> Message {
        let rest = self.url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        let mut request = format!(
            "{} /{path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n",
            self.method
        );
        for header in &self.headers {
            request.push_str(&format!("{header}\r\n"));
        }
        if !self.body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        request.push_str(&format!("\r\n{}", self.body));
        let mut wire = Wire::connect(host.parse().unwrap());
        wire.send(request);
        wire.read_answer()
    }

    /// What the terminal shows, which must be the body of a success.
    fn show(&self) -> String {
        let answer = self.run();
        assert_eq!(answer.status(), 200, "{answer:?}");
        let Some(pattern) = &self.grep else {
            return answer.text().to_owned();
        };
        let start = pattern
            .strip_prefix('^')
            .unwrap_or_else(|| panic!("{pattern}"));
        let lines = answer.text().lines().filter(|line| line.starts_with(start));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The rows of the sample server, in Python's text, which nobody parses on the way.
const USERS: &str =
    "[{'id': 1, 'name': \"O'Brien\", 'age': 30}, {'id': 2, 'name': None, 'age': None}]";

const TUTORIAL: &str = include_str!("../../docs/tutorials/first-call.md");

/// The words of each curl command of the tutorial, with the addresses of this demo.
fn documented(demo: &Proxy) -> Vec<Vec<String>> {
    let page = TUTORIAL
        .replace("$ curl", "curl")
        .replace("127.0.0.1:8080", &demo.address().to_string())
        .replace("127.0.0.1:9090", &demo.admin().to_string());
    let commands = commands(&page).into_iter();
    commands.map(|(_, command)| words(&command)).collect()
}

#[test]
fn every_printed_command_does_what_its_comment_says() {
    let demo = demo();
    let printed = introduction(&demo);
    let commands = commands(&printed);
    let moved = commands[1].1.clone();
    let printed_words: Vec<_> = commands.iter().map(|(_, command)| words(command)).collect();
    let shown: Vec<(String, String)> = commands
        .into_iter()
        .map(|(comment, command)| (comment, Curl::parse(&command).show()))
        .collect();
    assert_eq!(shown.len(), 7, "{printed}");
    let value = |index: usize| -> Value { serde_json::from_str(&shown[index].1).unwrap() };
    let comment = |index: usize| shown[index].0.as_str();

    assert_eq!(comment(0), "REST client -> REST upstream: passed through");
    let old = value(0);
    assert_eq!(old["content"][0]["text"], USERS);
    assert_eq!(old["isError"], false);

    assert_eq!(comment(1), "REST client -> RPC upstream: translated");
    assert_eq!(value(1), old);

    assert_eq!(comment(2), "RPC client -> RPC upstream: passed through");
    let new = value(2);
    assert_eq!((&new["jsonrpc"], &new["id"]), (&json!("2.0"), &json!(1)));
    assert_eq!(new["result"]["content"][0]["text"], "['users']");
    assert_eq!(new["result"].get("isError"), None);

    assert_eq!(comment(3), "RPC client -> REST upstream: translated");
    assert_eq!(value(3), new);

    let counted = &shown[4].1;
    assert_eq!(counted.lines().count(), 4, "{counted}");
    for line in counted.lines() {
        assert!(line.contains(r#"route="tools.call""#), "{line}");
        assert!(line.ends_with(" 1"), "{line}");
    }
    assert_eq!(value(5)["flags"][0]["stage"], "translate");
    assert_eq!(value(6)["stage"], "passthrough");

    // The tutorial shows the same commands and responses.
    let documented = documented(&demo);
    for (index, (comment, response)) in shown[..4].iter().enumerate() {
        assert!(documented.contains(&printed_words[index]), "{comment}");
        let line = format!("\n{response}\n");
        assert!(TUTORIAL.contains(&line), "{comment}: {response}");
    }

    // The client is back on the old way: its answer is that of everybody else.
    let moved = Curl::parse(&moved);
    assert_eq!(serde_json::from_str::<Value>(&moved.show()).unwrap(), old);
}

/// A tool call over REST, by a client.
fn rest(demo: &Proxy, client: &str, body: Value) -> Message {
    let headers = [
        ("content-type", "application/json"),
        ("x-client-id", client),
    ];
    demo.rest("POST", "/mcp/v1/tools/call", &headers, body.to_string())
}

/// A tool call over RPC, by a client.
fn rpc(demo: &Proxy, client: &str, params: Value) -> Value {
    let headers = [
        ("content-type", "application/json"),
        ("x-client-id", client),
    ];
    let call = json!({"jsonrpc": "2.0", "id": "a-1", "method": "tools/call", "params": params});
    let answer = demo.rest("POST", "/rpc", &headers, call.to_string());
    assert_eq!(answer.status(), 200, "{answer:?}");
    let answer = answer.json();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!("a-1"))
    );
    answer
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

#[test]
fn a_success_is_the_same_rows_in_all_four_quadrants() {
    let demo = demo();
    let query = || call("query_records", json!({"table_name": "users"}));
    let content = json!([{"type": "text", "text": USERS}]);
    let [passed, translated] = ["anybody", "mover"].map(|client| rest(&demo, client, query()));
    assert_eq!((passed.status(), translated.status()), (200, 200));
    assert_eq!(passed.json(), json!({"content": content, "isError": false}));
    assert_eq!(translated.body, passed.body);
    let [passed, translated] = ["anybody", "mover"].map(|client| rpc(&demo, client, query()));
    assert_eq!(passed["result"], json!({"content": content}));
    assert_eq!(translated, passed);
}

const TOOLS: [&str; 8] = [
    "create_table",
    "insert_record",
    "query_records",
    "update_record",
    "delete_record",
    "list_tables",
    "describe_table",
    "execute_raw_query",
];

#[test]
fn the_list_of_tools_is_that_of_the_server_in_all_four_quadrants() {
    let demo = demo();
    let list = |client| {
        let answer = demo.rest("POST", "/mcp/v1/tools/list", &[("x-client-id", client)], "");
        assert_eq!(answer.status(), 200, "{answer:?}");
        answer.json()
    };
    let tools = list("anybody");
    let all = tools["tools"].as_array().unwrap();
    let named: Vec<_> = all
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(named, TOOLS);
    let schema = json!({"type": "object", "properties": {}, "required": []});
    assert_eq!(all[5]["inputSchema"], schema);
    // The rewrite describes one tool in other words.
    let mut rewritten = tools.clone();
    rewritten["tools"][5]["description"] = json!("List tables");
    assert_eq!(list("mover"), rewritten);
    for (client, tools) in [("anybody", rewritten), ("mover", tools)] {
        let headers = [
            ("content-type", "application/json"),
            ("x-client-id", client),
        ];
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let answer = demo.rest("POST", "/rpc", &headers, call).json();
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": tools}));
    }
}

#[test]
fn a_failure_of_a_tool_is_what_each_side_says() {
    let demo = demo();
    let said = |text: &str| json!({"content": [{"type": "text", "text": text}], "isError": true});
    let internal = |details: &str| {
        let error =
            json!({"code": -32603, "message": "Internal error", "data": {"details": details}});
        [json!({"error": error}), json!({"result": said(details)})]
    };
    let not_found = "Tool not found: nope";
    let cases = [
        (
            call("nope", json!({})),
            not_found,
            [(); 2].map(|()| json!({"error": {"code": -32602, "message": not_found}})),
        ),
        (
            call("query_records", json!({"table_name": "nosuch"})),
            "no such table: nosuch",
            internal("no such table: nosuch"),
        ),
        (
            call("query_records", json!({"table_name": "a b"})),
            "Invalid table name: a b",
            internal("Invalid table name: a b"),
        ),
    ];
    for (params, text, told) in cases {
        for (client, told) in ["anybody", "mover"].into_iter().zip(told) {
            let answer = rest(&demo, client, params.clone());
            assert_eq!((answer.status(), answer.json()), (200, said(text)));
            // A translated failure is a result, whose text every client of MCP shows.
            let mut answer = rpc(&demo, client, params.clone());
            let answer = answer.as_object_mut().unwrap();
            answer.retain(|name, _| name == "error" || name == "result");
            assert_eq!(Value::Object(answer.clone()), told);
        }
    }
}

#[test]
fn what_a_server_of_one_side_refuses_reaches_a_client_of_the_other() {
    let demo = demo();
    // The old way wants `arguments`, the new way does without.
    let missing = json!({"name": "list_tables"});
    let passed = rest(&demo, "anybody", missing.clone());
    assert_eq!(passed.status(), 422);
    assert_eq!(
        passed.json()["detail"][0]["loc"],
        json!(["body", "arguments"])
    );
    assert_eq!(rest(&demo, "mover", missing.clone()).status(), 200);
    assert!(rpc(&demo, "anybody", missing.clone())["result"].is_object());
    assert!(rpc(&demo, "mover", missing)["result"].is_object());
    // What the old way cannot read is a failure of the tool, in its words.
    let refused = rpc(
        &demo,
        "mover",
        json!({"name": "list_tables", "arguments": [1]}),
    );
    let result = &refused["result"];
    assert_eq!(result["isError"], true, "{refused}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("Input should be a valid dictionary"),
        "{text}"
    );
    let answer = &result["_meta"]["dualgauge/answer"];
    assert_eq!(answer["status"], 422);
    assert_eq!(answer["body"]["detail"][0]["type"], "dict_type");
    // The new way says which parameter it misses, and the old way does so in its own words.
    let nameless = || json!({"arguments": {}});
    let [passed, translated] = ["anybody", "mover"].map(|client| rest(&demo, client, nameless()));
    assert_eq!(passed.status(), 422);
    assert_eq!(translated.status(), 422);
    assert_eq!(translated.body, passed.body);
    let [passed, translated] = ["anybody", "mover"].map(|client| rpc(&demo, client, nameless()));
    assert_eq!(translated, passed);
}

#[test]
fn an_edit_of_the_printed_flags_file_acts() {
    let demo = demo();
    let printed = introduction(&demo);
    let (_, after) = printed.split_once("The configuration is in ").unwrap();
    let (folder, _) = after.split_once(". ").unwrap();
    let file = Path::new(folder).join("flags.toml");
    let flags = fs::read_to_string(&file).unwrap();
    fs::write(&file, flags.replace("\"translate\"", "\"retired\"")).unwrap();
    let list = || {
        let params = call("list_tables", json!({}));
        rest(&demo, "mover", params).status()
    };
    becomes(list, &410);
}

#[test]
fn a_signal_ends_the_demo_and_leaves_nothing_behind() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let demo = Proxy::launch(demo_in(folder.path(), "127.0.0.1:0"), elsewhere);
        introduction(&demo);
        assert_eq!(names(folder.path()).len(), 1);
        assert_eq!(
            rest(&demo, "mover", call("list_tables", json!({}))).status(),
            200
        );
        demo.signal(signal);
        let stopped = demo.wait();
        assert_eq!(stopped.status.code(), Some(0), "{signal}: {stopped:?}");
        assert_eq!(names(folder.path()), [""; 0], "{signal}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn a_second_demo_at_the_same_address_says_that_it_is_taken() {
    let first = demo();
    let folder = tempfile::tempdir().unwrap();
    let listen = first.address().to_string();
    let second = run_to_end(demo_in(folder.path(), &listen));
    assert_eq!((second.code, second.output.as_str()), (Some(1), ""));
    let errors = second.errors;
    let said = format!("error: cannot listen on {listen}: another process uses this port; ");
    assert!(errors.contains(&said), "{errors}");
    assert!(errors.contains("Address already in use"), "{errors}");
    assert_eq!(names(folder.path()), [""; 0]);
    // The first one has lost nothing.
    for _ in 0..8 {
        assert_eq!(
            rest(&first, "mover", call("list_tables", json!({}))).status(),
            200
        );
    }
}
