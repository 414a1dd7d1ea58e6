//! The child: this very test program, run again with a variable that says so. It does what the method says.

use std::io::{BufRead, Write, stdin, stdout};

use serde_json::{Value, json};

use crate::mcp::scripted::{asking_on_one_stream, requiring_on_one_stream};

/// The variable that makes a child of the program, and says which revision it speaks: `yes` is one with a handshake,
/// a date is that one, `none` says no revision at all, and `silent` and `mortal` are what it does at a question that it does
/// not know. `asking` has a handshake, `requiring` has none, and both ask for input. A path in front, behind `once `, is a file: the first child that is asked makes it, and ends.
/// Behind `changing ` is a file as well: the child that makes it is `silent`, and later ones speak 2026-07-28. `late ` in
/// front is a child that answers the question once it has read the next message: it was slow to start. `nameless` answers
/// the question by an error without an id, and `both` knows the question and has a handshake.
const CHILD: &str = "DUALGAUGE_TEST_CHILD";

/// The command and the variable of a child, as keys of an upstream.
pub(crate) fn command() -> String {
    command_of("yes")
}

/// The same for a child of another revision.
pub(crate) fn command_of(era: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    // With one thread, the name of the test would stand before the first answer.
    format!(
        "command = [{program:?}, \"stdio::child::speaks\", \"--exact\", \"--nocapture\", \"--test-threads=2\"]\n\
         env = {{ {CHILD} = {era:?}, SECRET = \"hunter2\" }}\n"
    )
}

fn say(text: &str) {
    let mut out = stdout().lock();
    out.write_all(format!("{text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// What each message of a subscription bears in `_meta`.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn notification(kind: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{kind}","params":{params}}}"#)
}

fn result(id: &Value, result: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// What the variable says of a child.
struct Kind<'v> {
    /// The child that is asked and creates this file ends.
    file: Option<&'v str>,
    is_late: bool,
    era: &'v str,
}

impl Kind<'_> {
    fn of(variable: &str) -> Kind<'_> {
        let once = variable.strip_prefix("once ");
        let (file, era) = match once.and_then(|own| own.split_once(' ')) {
            Some((file, era)) => (Some(file), era),
            None => (None, variable),
        };
        let era = match era.strip_prefix("changing ") {
            Some(file) if creates(file) => "silent",
            Some(_) => "2026-07-28",
            None => era,
        };
        let late = era.strip_prefix("late ");
        Kind {
            file,
            is_late: late.is_some(),
            era: late.unwrap_or(era),
        }
    }
}

/// Returns true if it has created a file.
fn creates(file: &str) -> bool {
    std::fs::File::create_new(file).is_ok()
}

#[test]
fn speaks() {
    let Some(era) = std::env::var_os(CHILD) else {
        return;
    };
    let era = era.into_string().unwrap();
    let Kind { file, is_late, era } = Kind::of(&era);
    let mut unanswered = None;
    eprintln!("the child is here\u{7}");
    let mut child = Child::default();
    for line in stdin().lock().lines() {
        let line = line.unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        let method = message["method"].as_str().unwrap_or("(an answer)");
        if method == "server/discover" && file.is_some_and(creates) {
            return;
        }
        if method == "server/discover" && is_late {
            unanswered = Some(message["id"].clone());
            continue;
        }
        if let Some(id) = unanswered.take() {
            match era {
                "nameless" => say(&refused(&Value::Null)),
                _ => say(&of_era("server/discover", &id, era).unwrap()),
            }
        }
        if method == "server/discover" && era != "2026-07-28" && era != "requiring" {
            // Each child is asked, and most do not know it.
            match era {
                "silent" => {}
                "mortal" => return,
                _ => say(&refused(&message["id"])),
            }
            continue;
        }
        child
            .seen
            .push(match message["params"]["requestId"].as_u64() {
                Some(id) => format!("{method} {id}"),
                None => method.to_owned(),
            });
        let asked = match era {
            "asking" => asking_on_one_stream(&message),
            "requiring" => requiring_on_one_stream(&message),
            _ => None,
        };
        if let Some(asked) = asked {
            asked.iter().for_each(|message| say(&message.to_string()));
            continue;
        }
        if method == "leave" {
            say(&result(&message["id"], &json!("bye")));
            return;
        }
        match of_era(method, &message["id"], era) {
            Some(said) => say(&said),
            None => child.serves(method, &message),
        }
    }
}

fn refused(id: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#)
}

/// What depends on the revision that the child speaks.
fn of_era(method: &str, id: &Value, era: &str) -> Option<String> {
    let info = json!({"name": "child"});
    Some(match method {
        "initialize" if era == "2026-07-28" => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"this child serves 2026-07-28, iban=DE02"}}}}"#
        ),
        "initialize" if era == "none" => result(id, &json!({"serverInfo": info})),
        "initialize" => {
            let version = Some(era).filter(|era| era.starts_with("20"));
            let version = version.unwrap_or("2025-11-25");
            let mut greeting = json!({"protocolVersion": version, "serverInfo": info});
            if era == "logging" {
                greeting["capabilities"] = json!({ "logging": {} });
            }
            result(id, &greeting)
        }
        "logging/setLevel" if era == "logging" => result(id, &json!({})),
        "server/discover" => {
            let server =
                json!({"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}});
            let said = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "_meta": server});
            result(id, &said)
        }
        "tools/call" => {
            let told = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
            let answer = result(id, &json!({"content": []}));
            match era {
                // Servers of this revision may put several messages into one array.
                "2025-03-26" => format!("[{told}, {answer}]"),
                "logging" => {
                    let levels = ["debug", "error"]
                        .map(|level| notification("message", &json!({ "level": level })));
                    format!("{}\n{answer}", levels.join("\n"))
                }
                _ => answer,
            }
        }
        _ => return None,
    })
}

#[derive(Default)]
struct Child {
    seen: Vec<String>,
    /// The ids of subscriptions.
    subscriptions: Vec<Value>,
    /// Answers that wait for the next message.
    held: Vec<String>,
}

impl Child {
    fn serves(&mut self, method: &str, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let answer = result(id, &json!({"got": params, "pid": std::process::id()}));
        match method {
            "echo" => say(&answer),
            "marked" => say(&format!("\u{feff}{answer}")),
            "ask" => say(&result(id, &json!({"got": params}))),
            "seen" => say(&result(id, &json!(self.seen))),
            "variables" => {
                let mut names: Vec<String> = std::env::vars_os()
                    .map(|(name, _)| name.into_string().unwrap())
                    .collect();
                names.sort();
                say(&result(id, &json!(names)));
            }
            "crash" => std::process::abort(),
            "subscriptions/listen" => {
                let told =
                    json!({"_meta": {SUBSCRIPTION: id}, "notifications": params["notifications"]});
                say(&notification("subscriptions/acknowledged", &told));
                self.subscriptions.push(id.clone());
            }
            "notifications/cancelled" => {
                self.subscriptions.retain(|own| *own != params["requestId"]);
            }
            "change" => {
                for own in &self.subscriptions {
                    let told = json!({"_meta": {SUBSCRIPTION: own}});
                    say(&notification("tools/list_changed", &told));
                }
                say(&result(id, &json!(self.subscriptions.len())));
            }
            "hold" => self.held.push(answer),
            "release" => {
                let held = std::mem::take(&mut self.held);
                held.iter().rev().for_each(|held| say(held));
                say(&answer);
            }
            _ => says(method, (id, &answer)),
        }
    }
}

/// Says what a client may not expect.
fn says(method: &str, (id, answer): (&Value, &str)) {
    match method {
        "null" => {
            say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#)
        }
        "chatter" => {
            for noise in [
                "Starting up...",
                "5",
                "",
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
                r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}"#,
                r#"{"jsonrpc":"2.0","id":999999,"result":{}}"#,
            ] {
                say(noise);
            }
            say(answer);
            say(answer);
        }
        "around" => {
            for told in ["1", "2", "", "3"] {
                say(&match told {
                    "" => answer.to_owned(),
                    _ => format!(
                        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"line":{told}}}}}"#
                    ),
                });
            }
        }
        "stringly" => say(&result(&json!(id.to_string()), &json!({}))),
        "deep" => {
            let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
            say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{deep}}}"#));
        }
        "large" => say(&result(id, &json!("x".repeat(5000)))),
        _ => {}
    }
}
