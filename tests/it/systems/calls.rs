//! Transcripts of calls: what a client says, what the server behind gets, what the client gets. And what the tests of
//! the tables do with them.

use serde_json::Value;

use crate::scene::Called;
use crate::support::{Message, Proxy, Upstream, program, run_to_end};

/// A call of a transcript: three lines that begin with `-> `, `=> ` and `<- `.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) said: &'a str,
    sent: &'a str,
    answer: &'a str,
}

fn calls(transcript: &str) -> Vec<Call<'_>> {
    let blocks = transcript.trim_end().split("\n\n");
    let call = |block| {
        let lines: Vec<&str> = str::lines(block).collect();
        let part = |at: usize, mark| {
            let line = lines.get(at).and_then(|line| line.strip_prefix(mark));
            line.unwrap_or_else(|| panic!("no line {mark:?} in {block:?}"))
        };
        Call {
            said: part(0, "-> "),
            sent: part(1, "=> "),
            answer: part(2, "<- "),
        }
    };
    blocks.map(call).collect()
}

/// Plays each call: `play` gives what was sent and what was answered. All that differ are shown at once.
pub(super) fn play(transcript: &str, play: impl Fn(&Call<'_>) -> (String, String)) {
    let mut wrong = Vec::new();
    let calls = calls(transcript);
    assert!(calls.len() > 10, "{calls:?}");
    for call in calls {
        let (sent, answer) = play(&call);
        if normal(&sent) != normal(call.sent) || normal(&answer) != normal(call.answer) {
            wrong.push(format!("-> {}\n=> {sent}\n<- {answer}", call.said));
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{}", wrong.join("\n\n"));
}

/// The text with its JSON, if any, in a form that compares.
fn normal(text: &str) -> String {
    let (before, json) = text.split_at(text.find('{').unwrap_or(text.len()));
    match json {
        "" => before.trim_end().to_owned(),
        json => format!("{before}{}", json_of(json)),
    }
}

pub(super) fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// A REST call, such as `POST /api/x {"a":1}`.
pub(super) fn ask(proxy: &Proxy, headers: &[(&str, &str)], call: &str) -> Message {
    let mut words = call.splitn(3, ' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let body = words.next().unwrap_or_default();
    let json = [("Content-Type", "application/json")];
    let kind: &[(&str, &str)] = if body.is_empty() { &[] } else { &json };
    proxy.rest(method, target, &[headers, kind].concat(), body)
}

/// The JSON-RPC call that came in last, such as `status/get {}`.
pub(super) fn sent_rpc(upstream: &Upstream) -> String {
    let requests = upstream.requests();
    let called = Called::of(requests.last().unwrap());
    format!("{} {}", called.method(), called.params())
}

/// The REST call that came in last, as [`ask`] takes it.
pub(super) fn sent_rest(upstream: &Upstream) -> String {
    let requests = upstream.requests();
    let Some(sent) = requests.last() else {
        return "nothing".to_owned();
    };
    let start = sent.head.start.strip_suffix(" HTTP/1.1").unwrap();
    format!("{start} {}", sent.text()).trim_end().to_owned()
}

/// Checks that `dualgauge check` proves the versions of a table, and shows each loss that it admits, with a witness.
pub(super) fn expect_proven(versions: &[&str], more: &str) {
    let shown: String = versions.iter().map(|table| proven(table, more)).collect();
    let reasons = versions[0]
        .lines()
        .filter_map(|line| line.strip_prefix("lossy = "));
    for why in reasons {
        let accepted = format!("(accepted: {})", why.trim_matches('"'));
        let mut pairs = shown.lines().zip(shown.lines().skip(1));
        let has_witness =
            pairs.any(|(loss, sent)| loss.contains(&accepted) && sent.starts_with("    sent  "));
        assert!(has_witness, "no {why} in:\n{shown}");
    }
}

/// What `dualgauge check` says of a table that it has nothing against.
fn proven(table: &str, more: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let upstream = |name, side, port| {
        format!("[upstream.{name}]\nside = \"{side}\"\nurl = \"http://127.0.0.1:{port}/\"\n")
    };
    let (old, new) = (upstream("old", "rest", 9001), upstream("new", "rpc", 9002));
    let config = format!("include = [\"table.toml\"]\n{old}{new}{more}");
    std::fs::write(folder.path().join("table.toml"), table).unwrap();
    std::fs::write(&file, config).unwrap();
    let run = run_to_end(program(&[
        "check",
        "-v",
        "--config",
        file.to_str().unwrap(),
    ]));
    assert_eq!(run.code, Some(0), "{}\n{}", run.output, run.errors);
    assert!(run.output.contains("\nok: "), "{}", run.output);
    run.output
}
