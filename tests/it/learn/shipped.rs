//! Drafts of the traffic of the shipped route tables, judged against these tables.
//!
//! The traffic of a table is a recording: each example of each route with several values, as a REST client and as a
//! JSON-RPC client send it, with the replies of the example. `learn` drafts a table of it, which does not know the
//! shipped one. `tests/data/learn/shipped.txt` has the verdict on each route of the shipped table.
//!
//! ```text
//! equal         both patterns of the draft are those of the route, up to names of holes
//! more general  the draft reads every recorded call that the route reads, and writes the same call
//! wrong         the draft reads a recorded call of the route, and writes another call
//! missing       the draft does not read all recorded calls of the route
//! ```

mod traffic;
mod translated;

use std::fs;

use serde_json::Value;

use super::{Observed, Which, drafted, plan, read};
use crate::config::compile::compile;
use crate::config::load::{Sources, load};
use dualgauge_model::check::Message;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::Wire;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;
use dualgauge_recording::recording::{RecordedTime, header_line, write_call};
use traffic::{RouteCall, as_recorded, calls};
use translated::{replied, translated};

const TABLE: &str = "tests/data/learn/shipped.txt";

/// The traffic of a table, and the draft of it.
struct Learned {
    shipped: Plan,
    /// The calls of each route.
    calls: Vec<Vec<RouteCall>>,
    draft: Plan,
    shipped_toml: toml::Table,
    draft_toml: toml::Table,
}

/// Returns the names of the systems with a table in `config` and a configuration in `config/examples`, in order.
fn systems() -> Vec<String> {
    let tables = fs::read_dir("config").unwrap();
    let names = tables.filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".toml").map(str::to_owned)
    });
    let is_example = |name: &String| fs::exists(format!("config/examples/{name}.toml")).unwrap();
    let mut names: Vec<String> = names.filter(is_example).collect();
    names.sort();
    names
}

impl Learned {
    fn new(system: &str) -> Learned {
        let sources = Sources {
            file: Some(format!("config/examples/{system}.toml").into()),
            ..Sources::default()
        };
        let shipped = compile(&load(&sources).unwrap(), &[]).unwrap();
        let routes = 0..shipped.routes.routes().len();
        let calls: Vec<Vec<RouteCall>> = routes
            .map(|index| match shipped.routes.route(index).rest_protocol {
                Wire::Http => calls(&shipped, index),
                Wire::Frame | Wire::Old => Vec::new(),
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("calls.jsonl");
        fs::write(&file, recording(&shipped, &calls)).unwrap();
        let mut observed = Observed::default();
        read(&file, Which::All, &mut observed).unwrap();
        let draft = drafted(&mut observed, "calls.jsonl").unwrap().toml;
        let shipped_toml = fs::read_to_string(format!("config/{system}.toml")).unwrap();
        Learned {
            shipped,
            calls,
            draft: plan(&draft),
            shipped_toml: shipped_toml.parse().unwrap(),
            draft_toml: draft.parse().unwrap(),
        }
    }

    /// Returns the verdict on a route of the shipped table.
    fn verdict(&self, index: usize) -> Verdict {
        let mut verdict = Verdict::default();
        let route = self.shipped.routes.route(index);
        for call in &self.calls[index] {
            for from in Side::ALL {
                if route.enters_from(from) && call.comes_from(from) {
                    self.judge(call, from, &mut verdict);
                }
            }
        }
        verdict
    }

    fn judge(&self, call: &RouteCall, from: Side, verdict: &mut Verdict) {
        verdict.calls += 1;
        let sent = call.call(from);
        let Some(found) = translated(&self.draft, sent) else {
            return;
        };
        let wanted = translated(&self.shipped, sent).unwrap();
        if !is_same_call(&found.message, &wanted.message) {
            let text = format!("{sent}: {} instead of {}", found.message, wanted.message);
            return verdict.wrong.push(text);
        }
        verdict.read += 1;
        let of_draft = self.draft.routes.route(found.index);
        let of_shipped = self.shipped.routes.route(wanted.index);
        let form = |table: &toml::Table, name: &str| form(table, name);
        verdict.is_equal =
            form(&self.draft_toml, &of_draft.name) == form(&self.shipped_toml, &of_shipped.name);
        let Some(reply) = call.reply(from.other()) else {
            return;
        };
        verdict.replies += 1;
        let wanted = replied(&self.shipped, &wanted, reply);
        let found = replied(&self.draft, &found, reply);
        let is_same = match (&wanted, &found) {
            (Some(wanted), Some(found)) => wanted.same(found),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        verdict.same_replies += u32::from(is_same);
    }
}

/// The verdict on a route.
#[derive(Debug, Default)]
struct Verdict {
    /// The recorded calls that the route translates.
    calls: u32,
    /// Those that the draft translates to the same call.
    read: u32,
    /// Those that the draft translates to another one.
    wrong: Vec<String>,
    is_equal: bool,
    /// The recorded replies to the calls that the draft reads.
    replies: u32,
    /// Those that the draft translates to the same reply.
    same_replies: u32,
}

impl Verdict {
    fn line(&self) -> String {
        let verdict = match self {
            Verdict { wrong, .. } if !wrong.is_empty() => "wrong",
            Verdict { read, calls, .. } if read < calls || *calls == 0 => "missing",
            Verdict { is_equal: true, .. } => "equal",
            _ => "more general",
        };
        format!(
            "{verdict}; calls {}/{}; replies {}/{}",
            self.read, self.calls, self.same_replies, self.replies
        )
    }
}

fn recording(shipped: &Plan, calls: &[Vec<RouteCall>]) -> Vec<u8> {
    let mut file = header_line(RecordedTime::default(), "test");
    for (index, calls) in calls.iter().enumerate() {
        for call in calls {
            let side = |side: &Side| shipped.routes.route(index).enters_from(*side);
            // RPC clients of a route that only REST clients enter are those of the RPC server itself.
            for from in Side::ALL
                .into_iter()
                .filter(|it| side(it) || *it == Side::Rpc)
            {
                file.extend(write_call(&as_recorded(call, from)).unwrap());
            }
        }
    }
    file
}

/// Compares two calls. `{}` and no body are the same call, as in the examples of routes.
fn is_same_call(one: &Message, other: &Message) -> bool {
    let bare = |message: &Message| {
        let mut message = message.clone();
        if let Message::RestCall { body, .. } = &mut message {
            body.take_if(|body| body.same(&Json::literal("{}")));
        }
        message
    };
    bare(one).same(&bare(other))
}

/// Returns the patterns of a route with holes named by their order.
fn form(table: &toml::Table, name: &str) -> Vec<String> {
    let routes = table["route"].as_array().unwrap();
    let route = routes.iter().find(|it| it["name"].as_str() == Some(name));
    let route = route.unwrap();
    let keys = ["rest", "rpc", "body", "params", "from"];
    let texts = keys.map(|key| {
        let value = route.get(key).map(|it| serde_json::to_value(it).unwrap());
        value.unwrap_or(Value::Null).to_string()
    });
    let mut names: Vec<String> = Vec::new();
    let texts = texts.iter().map(|text| {
        let mut form = String::new();
        for (at, part) in text.split('{').enumerate() {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            if at == 0 || name.is_empty() {
                form.push_str(part);
                continue;
            }
            let known = names.iter().position(|it| it == name).unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
            form.push_str(&format!("{{h{known}{rest}"));
        }
        form
    });
    texts.collect()
}

#[test]
fn drafts_of_the_shipped_systems_are_never_wrong() {
    let pinned = fs::read_to_string(TABLE).unwrap_or_default();
    let mut wrong = Vec::new();
    let mut lines = Vec::new();
    let systems = systems();
    assert_eq!(systems.len(), 5, "{systems:?}");
    for system in &systems {
        let learned = Learned::new(system);
        for (index, route) in learned.shipped.routes.routes().iter().enumerate() {
            let verdict = learned.verdict(index);
            wrong.extend(
                verdict
                    .wrong
                    .iter()
                    .map(|it| format!("{}: {it}", route.name)),
            );
            lines.push(format!("{system} {}: {}", route.name, verdict.line()));
        }
    }
    let pinned: Vec<(&str, &str)> = pinned
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once("; because ").expect(line))
        .collect();
    let verdicts: Vec<&str> = pinned.iter().map(|(verdict, _)| *verdict).collect();
    assert!(
        wrong.is_empty(),
        "{}\n{}",
        wrong.join("\n"),
        lines.join("\n")
    );
    assert!(
        verdicts == lines,
        "{TABLE} must have:\n{}",
        lines.join("\n")
    );
    for (verdict, reason) in pinned {
        assert!(!reason.trim().is_empty(), "{verdict}");
    }
}
