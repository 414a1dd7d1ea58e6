//! Pairs of responses that differ, as reports show them: a proposal of an outcome row needs their structure.
//!
//! A sketch has the members of a response with redacted values ([`RedactedValue`]), so equal texts look equal, and a
//! text is only shown if the route allows it. All numbers are bounded. Law: the order of adding and merging does not
//! matter as long as there is capacity.
//!
//! Used by `compare::mismatches`, by the comparison of live and of replayed calls, and by reports.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::{Map, Value as JsonValue, json};

use super::comparison::Terms;
use super::pointer::{PointerBuilder, PointerStep};
use super::redacted::Visibility;
use super::response::{ComparedBody, ComparedResponse, ParsedResponse, essence};
use super::rules::{Active, Rules};
use super::tally::Tally;
use crate::rollout::Stage;
use dualgauge_patterns::json::{Json, JsonIndex, JsonKind, Spelled, Value};
use dualgauge_patterns::side::Side;

/// The maximum number of values in a sketch.
const VALUES: usize = 48;
/// The maximum nesting of a sketch.
const DEPTH: usize = 8;
/// The maximum length of a sketch as JSON, in bytes; a longer one is not kept.
const LONGEST: usize = 1024;
/// The maximum number of pairs of a group.
const PAIRS: usize = 5;
/// The maximum number of groups of a route.
const GROUPS: usize = 16;

/// A response whose values are redacted, and the way in which it ends.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplySketch {
    /// The status or the code, with that of a response that the built-in table translated.
    ending: String,
    /// JSON: `status`, `type` and `body` or `text`; `result`; or `error`.
    json: String,
}

/// The responses of the control and of the candidate to one call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplyPair {
    /// The response of the control.
    pub control: ReplySketch,
    /// The response of the candidate.
    pub candidate: ReplySketch,
}

/// The response of a pair that the proxy translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Translated {
    /// That of the control, in `verify`.
    Control,
    /// That of the candidate, in `shadow`.
    Candidate,
}

impl Translated {
    /// Returns the translated response of calls in a stage with a candidate.
    #[must_use]
    pub const fn of(stage: Stage) -> Option<Translated> {
        match stage {
            Stage::Shadow => Some(Translated::Candidate),
            Stage::Verify => Some(Translated::Control),
            Stage::Passthrough | Stage::Translate | Stage::Retired => None,
        }
    }

    /// Returns the name used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Translated::Control => "control",
            Translated::Candidate => "candidate",
        }
    }
}

/// The calls that one group of pairs has in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ReplyGroup {
    /// The side of the callers.
    side: Side,
    /// The response that the proxy translated.
    translated: Translated,
    /// The ending of the control's response.
    control: String,
    /// The ending of the candidate's response.
    candidate: String,
}

/// A group as reports show it.
#[derive(Debug, Serialize)]
struct GroupView<'p> {
    side: &'static str,
    translated: &'static str,
    control: &'p str,
    candidate: &'p str,
    calls: u64,
    samples: Vec<JsonValue>,
}

/// Pairs of responses of one route, by their endings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyPairs {
    groups: BTreeMap<ReplyGroup, (Tally, BTreeSet<ReplyPair>)>,
}

impl ReplySketch {
    /// Sketches a response; `None` if the sketch is too long.
    #[must_use]
    pub fn new(
        response: &ComparedResponse<'_>,
        rules: &Rules,
        terms: &Terms,
    ) -> Option<ReplySketch> {
        let parsed = ParsedResponse::new(response, terms.depth);
        let trees = parsed.trees();
        let mut sketcher = Sketcher {
            rules,
            terms,
            path: PointerBuilder::default(),
            left: VALUES,
        };
        let mut members = Map::new();
        let mut ending = String::new();
        match response {
            ComparedResponse::Rest {
                status, headers, ..
            } => {
                ending = format!("status {status}");
                members.insert("status".to_owned(), json!(status));
                if let Some(kind) = essence(headers).filter(|kind| kind.len() < 100) {
                    members.insert("type".to_owned(), json!(kind));
                }
                match &parsed.body {
                    ComparedBody::Absent => {}
                    ComparedBody::Json(json) => {
                        let code = json.member("rpc").and_then(|rpc| rpc.member("code"));
                        ending.push_str(&inner("error", code.as_ref()));
                        sketcher.part("body", trees.body.as_ref(), &mut members);
                    }
                    ComparedBody::Text(text) => {
                        let shown = sketcher.visibility().bytes("text", text);
                        members.insert("text".to_owned(), json!(shown.as_str()));
                    }
                }
            }
            ComparedResponse::Result(_) => {
                ending.push_str("result");
                sketcher.part("result", trees.result.as_ref(), &mut members);
            }
            ComparedResponse::Error { code, data, .. } => {
                let status = data.and_then(|data| data.member("status"));
                ending = format!("error {code}{}", inner("status", status.as_ref()));
                let mut error = Map::new();
                error.insert("code".to_owned(), json!(code));
                sketcher.enter("error");
                sketcher.part("message", trees.message.as_ref(), &mut error);
                sketcher.part("data", trees.data.as_ref(), &mut error);
                sketcher.path.leave();
                members.insert("error".to_owned(), JsonValue::Object(error));
            }
        }
        let json = JsonValue::Object(members).to_string();
        (json.len() <= LONGEST).then_some(ReplySketch { ending, json })
    }
}

/// Returns the status or code inside of a response, in brackets.
fn inner(what: &str, number: Option<&Json>) -> String {
    let number = number.and_then(|number| std::str::from_utf8(number.as_bytes()).ok());
    let number = number.and_then(|number| number.parse::<i64>().ok());
    number.map_or_else(String::new, |number| format!(" ({what} {number})"))
}

struct Sketcher<'a, 'r> {
    rules: &'r Rules,
    terms: &'r Terms,
    path: PointerBuilder<'a>,
    /// The number of values that still fit.
    left: usize,
}

impl<'a> Sketcher<'a, '_> {
    fn enter(&mut self, name: &'static str) {
        let name = Spelled::Text(name.into());
        self.path.enter(PointerStep::Name(name));
    }

    /// Adds a part of the response, if it is there and not ignored.
    fn part(
        &mut self,
        name: &'static str,
        tree: Option<&'a JsonIndex<'a>>,
        members: &mut Map<String, JsonValue>,
    ) {
        let Some(tree) = tree else { return };
        let mut active = self.rules.root();
        if self.path.depth() > 0 {
            active = self.rules.member(&active, "error");
        }
        let active = self.rules.member(&active, name);
        self.enter(name);
        let value = self.value(&tree.root(), &active);
        self.path.leave();
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    }

    /// Returns a value without the places that a rule ignores; `None` if it is ignored itself.
    fn value(&mut self, value: &Value<'a>, active: &Active) -> Option<JsonValue> {
        if self.rules.ignores(active) {
            return None;
        }
        self.left = self.left.saturating_sub(1);
        let is_cut = self.left == 0 || self.path.depth() >= DEPTH;
        let shown = |own: &Self| json!(own.visibility().value(value).as_str());
        Some(match value.kind() {
            JsonKind::Object | JsonKind::Array if is_cut => shown(self),
            JsonKind::Object => {
                let mut members = Map::new();
                for (name, member) in value.sorted() {
                    if self.left == 0 {
                        return Some(shown(self));
                    }
                    let inside = self.rules.of(active, &name);
                    let text = name.shown().into_owned();
                    self.path.enter(PointerStep::Name(name));
                    let member = self.value(&member, &inside);
                    self.path.leave();
                    members.extend(member.map(|member| (text, member)));
                }
                JsonValue::Object(members)
            }
            JsonKind::Array => {
                let mut elements = Vec::new();
                for (index, element) in value.children().enumerate() {
                    if self.left == 0 {
                        return Some(shown(self));
                    }
                    let inside = self.rules.element(active, index);
                    self.path.enter(PointerStep::Element(index, index));
                    elements.extend(self.value(&element, &inside));
                    self.path.leave();
                }
                JsonValue::Array(elements)
            }
            JsonKind::Null => JsonValue::Null,
            // A number or a boolean that is shown is itself; a description is a string.
            JsonKind::Boolean | JsonKind::Number => {
                let shown = shown(self);
                let text = shown.as_str().unwrap_or_default();
                serde_json::from_str(text).unwrap_or(shown)
            }
            JsonKind::String => shown(self),
        })
    }

    fn visibility(&self) -> Visibility<'_> {
        Visibility {
            show: self.rules.source().show,
            salt: &self.terms.salt,
            is_secret: self.path.is_secret(&self.rules.source().redaction),
        }
    }
}

impl ReplyPair {
    fn group(&self, side: Side, translated: Translated) -> ReplyGroup {
        ReplyGroup {
            side,
            translated,
            control: self.control.ending.clone(),
            candidate: self.candidate.ending.clone(),
        }
    }
}

impl ReplyPairs {
    /// Adds the pair of a call at `at_ms`, if it fits. `room` is the number of further pairs that may be kept. Returns
    /// the increase of the number of pairs.
    pub fn add(
        &mut self,
        pair: ReplyPair,
        called: (Side, Translated),
        at_ms: u64,
        room: usize,
    ) -> usize {
        let group = pair.group(called.0, called.1);
        let tally = Tally {
            count: 1,
            last_ms: at_ms,
        };
        self.extend(&group, tally, [pair], room)
    }

    fn extend(
        &mut self,
        group: &ReplyGroup,
        tally: Tally,
        pairs: impl IntoIterator<Item = ReplyPair>,
        room: usize,
    ) -> usize {
        if !self.groups.contains_key(group) && self.groups.len() >= GROUPS {
            return 0;
        }
        let (known, samples) = self.groups.entry(group.clone()).or_default();
        known.add(tally);
        let before = samples.len();
        for pair in pairs {
            if samples.len() < before.saturating_add(room) || samples.contains(&pair) {
                samples.insert(pair);
            }
            if samples.len() > PAIRS {
                samples.pop_last();
            }
        }
        samples.len() - before.min(samples.len())
    }

    /// Adds those of another worker. Returns the increase of the number of pairs.
    pub fn merge(&mut self, other: &ReplyPairs, room: usize) -> usize {
        let mut more = 0;
        for (group, (tally, pairs)) in &other.groups {
            more += self.extend(group, *tally, pairs.iter().cloned(), room - more.min(room));
        }
        more
    }

    /// Returns the number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.values().map(|(_, pairs)| pairs.len()).sum()
    }

    /// Returns true if there is no pair.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Serialize for ReplyPairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A sketch is JSON that this module has written.
        let value = |sketch: &ReplySketch| -> JsonValue {
            serde_json::from_str(&sketch.json).unwrap_or_default()
        };
        let groups = self.groups.iter().map(|(group, (tally, pairs))| {
            let samples = pairs.iter().map(|pair| {
                json!({ "control": value(&pair.control), "candidate": value(&pair.candidate) })
            });
            GroupView {
                side: group.side.as_str(),
                translated: group.translated.as_str(),
                control: &group.control,
                candidate: &group.candidate,
                calls: tally.count,
                samples: samples.collect(),
            }
        });
        serializer.collect_seq(groups)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;
    use crate::compare::{Path, RuleSource, Salt, Show};

    const TERMS: Terms = Terms {
        depth: 64,
        salt: Salt([7; 16]),
    };

    fn rest(status: u16, body: &str, rules: &Rules) -> Option<ReplySketch> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        let response = ComparedResponse::Rest {
            status,
            headers: &headers,
            body: &body,
        };
        ReplySketch::new(&response, rules, &TERMS)
    }

    #[test]
    fn a_sketch_has_members_but_no_texts_and_no_ignored_places() {
        let ignore = vec![Path::parse("/body/at").unwrap()];
        let rules = Rules::compile(RuleSource {
            ignore,
            ..RuleSource::default()
        });
        let body = r#"{"error":"no such item","at":1,"id":7,"ok":false,"token":"x","long":1234567890123,"in":[{"a":null}],"rpc":{"code":-32001}}"#;
        let found = rest(404, body, &rules).unwrap();
        assert_eq!(found.ending, "status 404 (error -32001)");
        let shown: JsonValue = serde_json::from_str(&found.json).unwrap();
        assert_eq!(shown["status"], 404);
        assert_eq!(shown["type"], "application/json");
        let body = &shown["body"];
        let error = body["error"].as_str().unwrap();
        assert!(error.starts_with("string of 12 #"), "{error}");
        assert_eq!(body["at"], JsonValue::Null);
        assert_eq!((&body["id"], &body["ok"]), (&json!(7), &json!(false)));
        assert_eq!(body["token"], "string (hidden)");
        assert!(body["long"].is_string());
        assert_eq!(body["in"], json!([{ "a": null }]));
        let open = Rules::compile(RuleSource {
            show: Show::Values,
            ..RuleSource::default()
        });
        let found = rest(404, r#"{"error":"none"}"#, &open).unwrap();
        assert!(found.json.contains(r#""error":"\"none\"""#));
    }

    #[test]
    fn sketches_pairs_and_groups_are_bounded() {
        let rules = Rules::default();
        let wide: Vec<u32> = (0..1000).collect();
        let found = rest(200, &json!(wide).to_string(), &rules).unwrap();
        assert!(found.json.contains(r#""body":"array of 1000""#));
        let long: Map<String, JsonValue> =
            (0..40).map(|at| (format!("{at:050}"), json!(at))).collect();
        assert!(rest(200, &json!(long).to_string(), &rules).is_none());
        let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
        assert!(
            rest(200, &deep, &rules)
                .unwrap()
                .json
                .contains("array of 1")
        );
        let mut all = ReplyPairs::default();
        let mut added = 0;
        for status in 400..440 {
            for body in 0..10 {
                let sketch = |status| rest(status, &body.to_string(), &rules).unwrap();
                let pair = ReplyPair {
                    control: sketch(status),
                    candidate: sketch(500),
                };
                added += all.add(pair, (Side::Rest, Translated::Candidate), 5, 1000);
            }
        }
        assert_eq!((all.groups.len(), all.len()), (GROUPS, GROUPS * PAIRS));
        assert_eq!(added, all.len());
        let shown = json!(all);
        let first = json!({ "status": 400, "type": "application/json", "body": 0 });
        assert_eq!(shown[0]["calls"], 10);
        assert_eq!(shown[0]["samples"][0]["control"], first);
        let mut other = ReplyPairs::default();
        assert_eq!(other.merge(&all, 7), 7);
        assert_eq!(other.len(), 7);
        assert_eq!(all.merge(&all.clone(), 1000), 0);
    }
}
