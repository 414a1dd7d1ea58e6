//! Drafts of the traffic of the shipped route tables, judged against these tables.
//!
//! The traffic of a table is a recording that a proxy without routes wrote: clients of both sides sent each example of
//! each route with several values, and a server replied as the example says. `learn` drafts a table of the recording,
//! which does not know the shipped one. `tests/data/learn/shipped.txt` has the verdict on each route of the shipped
//! table.
//!
//! ```text
//! equal         both patterns of the draft are those of the route, up to names of holes
//! more general  the draft reads every recorded call that the route reads, and writes the same call
//! wrong         the draft reads a recorded call of the route, and writes another call
//! missing       the draft does not read all recorded calls of the route
//! ```

mod clients;
mod traffic;
mod translated;

use std::fs;
use std::thread;

use dualgauge::config::compile::compile;
use dualgauge::config::load::{Sources, load};
use dualgauge_model::check::Message;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::Wire;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;
use serde_json::Value;

use crate::support::{program, run_to_end};
use clients::Recorded;
use traffic::{RouteCall, calls};
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
        let draft = draft(&Recorded::new(&shipped, &calls));
        let shipped_toml = fs::read_to_string(format!("config/{system}.toml")).unwrap();
        Learned {
            shipped,
            calls,
            draft: checked(&draft),
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
        let is_first = verdict.read == 0;
        verdict.read += 1;
        let of_draft = self.draft.routes.route(found.index);
        let of_shipped = self.shipped.routes.route(wanted.index);
        let form = |table: &toml::Table, name: &str| form(table, name);
        verdict.is_equal = (is_first || verdict.is_equal)
            && form(&self.draft_toml, &of_draft.name) == form(&self.shipped_toml, &of_shipped.name);
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

/// Returns the draft that the program makes of a recording.
fn draft(recorded: &Recorded) -> String {
    let mut learn = program(&["learn"]);
    learn.args(&recorded.files);
    let drafted = run_to_end(learn);
    assert_eq!(drafted.code, Some(0), "{drafted:?}");
    let used = format!(
        "used: {} REST calls, {} RPC calls\n",
        recorded.rest, recorded.rpc
    );
    assert!(drafted.errors.starts_with(&used), "{used}{drafted:?}");
    drafted.output
}

/// Returns the plan of a draft, which passes `check`.
fn checked(routes: &str) -> Plan {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let upstreams = "include = ['routes.toml']\n\
                     [upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
                     [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n";
    fs::write(&file, upstreams).unwrap();
    fs::write(folder.path().join("routes.toml"), routes).unwrap();
    let mut check = program(&["check", "--config"]);
    check.arg(&file);
    let ended = run_to_end(check);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{routes}");
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    compile(&load(&sources).unwrap(), &[]).unwrap()
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
    let learned = thread::scope(|scope| {
        let started = systems.iter();
        let started: Vec<_> = started
            .map(|system| scope.spawn(|| Learned::new(system)))
            .collect();
        let learned = started.into_iter().map(|it| it.join().unwrap());
        learned.collect::<Vec<_>>()
    });
    for (system, learned) in systems.iter().zip(&learned) {
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
