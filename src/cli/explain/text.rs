//! Explanations as text: a title, followed by one labelled line for each fact. Used by `explain`.

use std::fmt::Write;

use super::explained::Explained;
use dualgauge_model::explain::{
    Decided, ExplainedAnswer, ExplainedBridge, Explanation, Refusal, RowLine, SentRequest,
};
use dualgauge_model::rollout::Proof;

/// The width of a label.
const LABEL: usize = 11;

/// Renders all explanations, separated by blank lines.
pub(super) fn render(explained: &[Explained]) -> String {
    let mut pages = Vec::new();
    for request in explained {
        for explanation in &request.explanations {
            pages.push(page(request.name.as_deref(), explanation));
        }
    }
    pages.join("\n")
}

fn page(name: Option<&str>, explanation: &Explanation) -> String {
    let mut page = ExplainText(String::new());
    page.0.push_str(&explanation.request);
    for more in [name, explanation.message.as_deref()].into_iter().flatten() {
        let _ = write!(page.0, "  ({more})");
    }
    page.0.push('\n');
    if let Some(route) = &explanation.route {
        page.row(
            "route",
            &format!("{}  {} = {}", route.name, route.rest, route.rpc),
        );
    }
    page.list("in front", &explanation.in_front);
    page.client(explanation);
    if let Some(decision) = &explanation.decision {
        page.decision(decision);
    }
    page.holes(explanation);
    page.list("dropped", &explanation.dropped);
    if let Some(bridge) = &explanation.bridge {
        page.bridge(bridge);
    }
    if let Some(login) = &explanation.login {
        page.row("login", login);
    }
    if let Some(sent) = &explanation.sends {
        page.sent(sent);
    }
    if let Some(stream) = &explanation.stream {
        page.row("stream", stream);
    }
    page.rows(&explanation.outcomes);
    if let Some(refused) = &explanation.refused {
        page.refused(refused);
    }
    if let Some(answer) = &explanation.answer {
        page.answer(answer);
    }
    page.0
}

struct ExplainText(String);

impl ExplainText {
    /// Writes the client, with the kind of proof of its identity.
    fn client(&mut self, explanation: &Explanation) {
        let mut text = explanation.client.clone();
        if explanation.proof != Proof::None.as_str() {
            let _ = write!(text, "  ({})", explanation.proof);
        }
        if let Some(fault) = &explanation.token {
            let _ = write!(text, "  its token proves nothing: {fault}");
        }
        self.row("client", &text);
    }

    fn row(&mut self, label: &str, text: &str) {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let _ = writeln!(self.0, "  {label:LABEL$}{first}");
        for line in lines {
            let _ = writeln!(self.0, "  {:LABEL$}{line}", "");
        }
    }

    fn list(&mut self, label: &str, texts: &[String]) {
        let mut label = label;
        for text in texts {
            self.row(label, text);
            label = "";
        }
    }

    fn decision(&mut self, decision: &Decided) {
        self.row("decision", &format!("{}, {}", decision.stage, decision.why));
        if let Some(changed) = &decision.changed {
            self.row("", changed);
        }
        if let Some(candidate) = &decision.candidate {
            self.row("candidate", candidate);
        }
        for flag in &decision.passed_over {
            let why = match (&*flag.why, flag.bucket) {
                ("held_back", _) => "the caller is held back, whatever the percentage".to_owned(),
                (_, Some(bucket)) => format!("the caller's bucket is {bucket} of 100000"),
                ("tripped", None) => "its guard has taken it back".to_owned(),
                (_, None) => "the caller has no key".to_owned(),
            };
            self.row(
                "",
                &format!("not flag {} ({} %): {why}", flag.flag, flag.percent),
            );
            if let Some(changed) = &flag.changed {
                self.row("", &format!("  {changed}"));
            }
        }
    }

    fn bridge(&mut self, bridge: &ExplainedBridge) {
        let ExplainedBridge {
            client,
            server,
            conversions,
        } = bridge;
        self.row("mcp", &format!("client {client}, server {server}"));
        for conversion in conversions {
            self.row("", conversion);
        }
    }

    fn holes(&mut self, explanation: &Explanation) {
        let names = explanation
            .holes
            .iter()
            .map(|hole| hole.name.chars().count());
        let widest = names.max().unwrap_or(0);
        let kinds = explanation
            .holes
            .iter()
            .map(|hole| hole.kind.chars().count());
        let broadest = kinds.max().unwrap_or(0);
        let lines = explanation.holes.iter().map(|hole| {
            let value = hole
                .value
                .as_ref()
                .map_or("(absent)", |value| value.as_str());
            let (name, kind) = (&hole.name, &hole.kind);
            format!("{name:widest$}  {kind:broadest$}  {value}")
        });
        self.list("holes", &lines.collect::<Vec<_>>());
    }

    fn sent(&mut self, sent: &SentRequest) {
        let SentRequest {
            method,
            target,
            authority,
            upstream,
            ..
        } = sent;
        self.row(
            "sends",
            &format!("{method} {target}  to {upstream} at {authority}"),
        );
        for (name, value) in sent.headers.iter().filter(|(name, _)| name != "host") {
            self.row("", &format!("{name}: {value}"));
        }
        if let Some(body) = &sent.body {
            self.row("", body.as_str());
        }
        if let Some(note) = &sent.note {
            self.row("", &format!("({note})"));
        }
    }

    fn refused(&mut self, refused: &Refusal) {
        let Refusal {
            status,
            code,
            reason,
            blame,
            message,
            ..
        } = refused;
        self.row(
            "refused",
            &format!("HTTP {status}, code {code}, {reason} (blame: {blame})"),
        );
        self.row("", message);
        if refused.document.as_str().is_empty() {
            self.row("", "(the caller of a notification is not told)");
        }
    }

    fn rows(&mut self, rows: &[RowLine]) {
        let mut lines: Vec<String> = rows.iter().map(row_line).collect();
        if !rows.is_empty() {
            lines.push("else the built-in table".to_owned());
        }
        self.list("outcomes", &lines);
    }

    fn answer(&mut self, answer: &ExplainedAnswer) {
        let row = match (&answer.row, &answer.note) {
            (_, Some(note)) => note.to_string(),
            (Some(row), None) => format!("by {}", row_line(row)),
            (None, None) => "by the built-in table".to_owned(),
        };
        self.row("answer", &format!("HTTP {}  {row}", answer.status));
        for (name, value) in &answer.headers {
            self.row("", &format!("{name}: {value}"));
        }
        if let Some(body) = &answer.body {
            self.row("", body.as_str());
        }
        if answer.dropped > 0 {
            self.row(
                "",
                &format!("(dropped: {} that no pattern names)", answer.dropped),
            );
        }
    }
}

fn row_line(row: &RowLine) -> String {
    format!("{}: {} = {}", row.key, row.rest, row.rpc)
}
