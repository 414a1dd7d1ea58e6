//! The memory server of `config/kuzu.toml` as its clients start it: this very test program, run again with a variable
//! that says which of the package's servers it is. One message a line, in the order of coming; what it was told lies in
//! the file `memories` of its folder, and each line that it read in `heard`.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write, stdout};

use serde_json::{Value, json};

use super::fake_kuzu::{call, perform};

/// The variable that makes such a child of the program.
const CHILD: &str = "DUALGAUGE_TEST_MEMORY";

/// Which server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// `kuzu_memory.mcp.run_server`, written by hand.
    Handwritten,
    /// An early version of that one: it leaves at a batch, says nothing to what it cannot read, and fails by a code.
    Early,
    /// `kuzu-memory mcp`, on the official library.
    Library,
}

impl Variant {
    const ALL: [(Variant, &'static str); 3] = [
        (Variant::Handwritten, "handwritten"),
        (Variant::Early, "early"),
        (Variant::Library, "library"),
    ];

    /// The upstream, for a configuration in whose folder the child runs.
    pub(super) fn upstream(self) -> String {
        let program = std::env::current_exe().unwrap();
        let program = program.to_str().unwrap();
        let (_, name) = Variant::ALL.iter().find(|(own, _)| *own == self).unwrap();
        // With one thread, the name of the test would stand before the first answer.
        format!(
            "[upstream.kuzu]\nside = \"rpc\"\ndirectory = \".\"\n\
             command = [{program:?}, \"systems::fake_kuzu_child::remembers\", \"--exact\", \"--nocapture\", \"--test-threads=2\"]\n\
             env = {{ {CHILD} = {name:?} }}\n"
        )
    }
}

#[test]
fn remembers() {
    let Some(wanted) = std::env::var_os(CHILD) else {
        return;
    };
    let (variant, _) = Variant::ALL
        .into_iter()
        .find(|(_, name)| wanted == *name)
        .unwrap();
    eprintln!("memories are kept in this folder");
    Child {
        variant,
        greeted: false,
        slow: None,
    }
    .serve();
}

/// What becomes of the child behind a line.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Goes(Option<String>),
    Ends(Option<String>),
}

struct Child {
    variant: Variant,
    greeted: bool,
    /// The answer of a tool that is slow: it comes with the next line.
    slow: Option<String>,
}

impl Child {
    fn serve(mut self) {
        let mut input = File::open("/dev/stdin").unwrap();
        let (mut came, mut space) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let count = input.read(&mut space).unwrap();
            came.extend_from_slice(&space[..count]);
            while let Some(end) = came.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = came.drain(..=end).collect();
                if !self.takes(str::from_utf8(&line).unwrap().trim()) {
                    return;
                }
                // These look for one line each time that bytes come, and see the second of two with the third.
                if self.variant != Variant::Library && count > 0 {
                    break;
                }
            }
            if count == 0 {
                return;
            }
        }
    }

    /// False where it ends.
    fn takes(&mut self, line: &str) -> bool {
        if line.is_empty() {
            return true;
        }
        append("heard", line);
        if let Some(slow) = self.slow.take() {
            say(&slow);
        }
        let next = self.hears(line);
        let (Next::Goes(said) | Next::Ends(said)) = &next;
        if let Some(said) = said {
            say(said);
        }
        matches!(next, Next::Goes(_))
    }

    fn hears(&mut self, line: &str) -> Next {
        // Python reads no number of more than 4300 digits.
        let read = (line.len() < 4300)
            .then(|| serde_json::from_str::<Value>(line).ok())
            .flatten();
        match (self.variant, read) {
            (Variant::Library, Some(message)) if is_message(&message) => {
                Next::Goes(self.library(&message))
            }
            (Variant::Library, _) => Next::Goes(Some(UNREADABLE.to_owned())),
            (Variant::Early, None) => Next::Goes(None),
            (Variant::Handwritten, None) => Next::Goes(Some(nobody(-32700, "Parse error: ..."))),
            (_, Some(message @ Value::Object(_))) => self.one(&message),
            (Variant::Handwritten, Some(Value::Array(batch))) => self.batch(&batch),
            // A scalar ends it, and a batch the early one.
            (_, Some(_)) => Next::Ends(None),
        }
    }

    fn batch(&mut self, batch: &[Value]) -> Next {
        if batch.is_empty() {
            let error = nobody(-32600, "Invalid Request: batch array cannot be empty");
            return Next::Goes(Some(format!("[{error}]")));
        }
        let (mut answers, mut ends) = (Vec::new(), false);
        for message in batch {
            let next = self.one(message);
            ends |= matches!(next, Next::Ends(_));
            let (Next::Goes(said) | Next::Ends(said)) = next;
            answers.extend(said);
        }
        let said = (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")));
        if ends {
            Next::Ends(said)
        } else {
            Next::Goes(said)
        }
    }

    /// One message to the servers written by hand. Nothing is greeted first.
    fn one(&mut self, message: &Value) -> Next {
        let is_early = self.variant == Variant::Early;
        if message["jsonrpc"] != "2.0" || message.get("params") == Some(&Value::Null) {
            let refused = nobody(-32600, "Invalid Request");
            return Next::Goes((!is_early).then_some(refused));
        }
        let id = &message["id"];
        if id.is_null() {
            return Next::Goes(None);
        }
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "shutdown" => Next::Ends(Some(answered(id, r#""result":{}"#))),
            "initialize" => Next::Goes(Some(answered(id, &self.greeting(params)))),
            "tools/list" => Next::Goes(Some(answered(id, &listed(self.variant)))),
            "tools/call" if params.is_array() => {
                let error = r#""error":{"code":-32603,"message":"Internal error: 'list' object has no attribute 'get'"}"#;
                Next::Goes(Some(answered(id, error)))
            }
            "tools/call" if is_early => Next::Goes(Some(answered(id, &early(params)))),
            "tools/call" => {
                let answer = answered(id, &tool(message));
                if params["arguments"]["query"] == "slow" {
                    self.slow = Some(answer);
                    return Next::Goes(None);
                }
                Next::Goes(Some(answer))
            }
            _ => Next::Goes(Some(answered(id, &perform(message)))),
        }
    }

    fn greeting(&self, params: &Value) -> String {
        if self.variant == Variant::Early {
            return r#""result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{},"prompts":null,"resources":null},"serverInfo":{"name":"kuzu-memory-mcp","version":"1.0.0"}}"#.to_owned();
        }
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let known = ["2025-11-25", "2025-06-18", "2024-11-05"];
        let version = known
            .iter()
            .find(|known| **known == asked)
            .unwrap_or(&known[0]);
        format!(
            r#""result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}},"prompts":{{}},"resources":{{}}}},"serverInfo":{{"name":"kuzu-memory-mcp","version":"1.12.11"}}}}"#
        )
    }

    /// One message to the server on the official library.
    fn library(&mut self, message: &Value) -> Option<String> {
        let id = message
            .get("id")
            .filter(|id| id.is_i64() || id.is_string())?;
        let invalid = r#""error":{"code":-32602,"message":"Invalid request parameters","data":""}"#;
        let said = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                self.greeted = true;
                self.greeting(&message["params"])
            }
            "ping" => r#""result":{}"#.to_owned(),
            _ if !self.greeted => invalid.to_owned(),
            "tools/list" => listed(self.variant),
            "tools/call" => checked(message),
            _ => invalid.to_owned(),
        };
        Some(answered(id, &said))
    }
}

/// What the library says to a line that it cannot read: a notification, and no answer.
pub(super) const UNREADABLE: &str = r#"{"method":"notifications/message","params":{"level":"error","logger":"mcp.server.exception_handler","data":"Internal Server Error"},"jsonrpc":"2.0"}"#;

/// Whether the library reads it.
fn is_message(message: &Value) -> bool {
    let is_params = |params: &Value| params.is_object() || params.is_null();
    message["jsonrpc"] == "2.0" && message.get("params").is_none_or(is_params)
}

fn answered(id: &Value, said: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},{said}}}"#)
}

/// An error that does not say whose it is.
fn nobody(code: i64, message: &str) -> String {
    answered(
        &Value::Null,
        &format!(r#""error":{{"code":{code},"message":"{message}"}}"#),
    )
}

/// What has a prefix, except in the early version.
const TOOLS: [&str; 5] = ["enhance", "learn", "recall", "remember", "stats"];
/// What only the early version can call, though all list it.
const LISTED: [&str; 4] = ["recent", "cleanup", "project", "init"];

fn listed(variant: Variant) -> String {
    let prefix = if variant == Variant::Early {
        ""
    } else {
        "kuzu_"
    };
    let names = TOOLS.iter().map(|name| format!("{prefix}{name}"));
    let tools: Vec<Value> = names
        .chain(LISTED.map(str::to_owned))
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
        .collect();
    format!(r#""result":{}"#, json!({ "tools": tools }))
}

/// A tool, with what was remembered before. The prefix may be left out.
fn tool(message: &Value) -> String {
    let mut message = message.clone();
    let name = message["params"]["name"].as_str().unwrap_or_default();
    if TOOLS.contains(&name) {
        message["params"]["name"] = format!("kuzu_{name}").into();
    }
    let (params, arguments) = (&message["params"], &message["params"]["arguments"]);
    match (params["name"].as_str(), arguments["content"].as_str()) {
        (Some("kuzu_remember"), Some(content)) if !content.is_empty() => {
            append("memories", &format!("- {content}"));
        }
        (Some("kuzu_recall"), _) => {
            let told = fs::read_to_string("memories").unwrap_or_default();
            if !told.is_empty() {
                let text = json!(told.trim_end());
                return format!(r#""result":{{"content":[{{"type":"text","text":{text}}}]}}"#);
            }
        }
        _ => {}
    }
    perform(&message)
}

/// The early version runs a command for each tool, and here it has no database.
fn early(params: &Value) -> String {
    let name = params["name"].as_str().unwrap_or_default();
    if TOOLS.iter().chain(&LISTED).any(|tool| *tool == name) {
        let message = format!("Error executing tool '{name}': no database");
        return format!(r#""error":{{"code":-32001,"message":"{message}"}}"#);
    }
    format!(r#""error":{{"code":-32601,"message":"Tool not found: {name}"}}"#)
}

/// A tool of the library: what fails is a result.
fn checked(message: &Value) -> String {
    let said = |text: &str, is_error: bool| {
        let text = json!(text);
        format!(r#""result":{{"content":[{{"type":"text","text":{text}}}],"isError":{is_error}}}"#)
    };
    match call(&message["params"]) {
        Ok(_) => {
            let said = tool(message);
            format!(r#"{},"isError":false}}"#, said.strip_suffix('}').unwrap())
        }
        Err(error) if error.contains("Tool not found") => {
            let name = message["params"]["name"].as_str().unwrap();
            said(&format!("Unknown tool: {name}"), false)
        }
        Err(_) => said(
            "Input validation error: 'query' is a required property",
            true,
        ),
    }
}

fn append(file: &str, line: &str) {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn say(text: &str) {
    let mut out = stdout().lock();
    out.write_all(format!("{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}
