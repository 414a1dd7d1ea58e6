//! Decoding of request bodies: a JSON object of known members, each at most once, or a list of all its problems.
//!
//! Used by `admin::explain`, `admin::problem` and `admin::response`.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::config::problem::nearest;
use dualgauge_model::record::RecordedBodies;
use dualgauge_model::rollout::{Percent, Stage};
use dualgauge_patterns::json::{
    Json, JsonFault, JsonKind, MemberSpan, decode, kind_of, scan_object,
};

/// The author of a change, if the request names none.
const NAMELESS: &str = "admin api";
/// The maximum nesting depth; far more than any member needs.
const DEPTH: u16 = 16;
/// A day, in seconds.
const LONGEST_RECORDING: u64 = 86_400;
const LONGEST_WHO: usize = 100;
const LONGEST_WHY: usize = 500;

/// A problem of a request body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct BodyProblem {
    /// The member, or `body`.
    pub(super) place: String,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl BodyProblem {
    pub(super) fn new(place: &str, message: impl Into<String>) -> Self {
        BodyProblem {
            place: place.to_owned(),
            message: message.into(),
            hint: None,
        }
    }
}

/// Reads the body of a flip: `{"stage": "translate", "percent": 25, "who": "anna"}`.
pub(super) fn flip(body: &Bytes) -> Result<((Stage, Percent), Attribution), Vec<BodyProblem>> {
    let mut object = JsonObject::read(body, &["stage", "percent", "who", "why"], DEPTH)?;
    let stage = object.required("stage", stage);
    let percent = object.required("percent", percent);
    let attribution = read_attribution(&mut object);
    match (stage, percent) {
        (Some(stage), Some(percent)) if object.problems.is_empty() => {
            Ok(((stage, percent), attribution))
        }
        _ => Err(object.problems),
    }
}

/// The requested recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingRequest {
    /// The time after which it stops.
    pub time: Duration,
    /// The percentage of calls that are recorded.
    pub sample: Percent,
    /// The bodies that are recorded; `None` for `record.bodies`.
    pub bodies: Option<RecordedBodies>,
}

/// The body that starts a recording.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordingBody {
    pub(super) request: RecordingRequest,
    pub(super) attribution: Attribution,
}

impl RecordingBody {
    /// Replaces the author by the owner of the token, as [`with_token_owner`] does.
    pub(super) fn with_token_owner(mut self, bearer: Option<&str>) -> RecordingBody {
        self.attribution = with_token_owner(self.attribution, bearer);
        self
    }
}

/// Reads the body that starts a recording, such as `{"seconds": 600, "sample": 10}`.
pub(super) fn recording(body: &Bytes) -> Result<RecordingBody, Vec<BodyProblem>> {
    let known = ["seconds", "sample", "bodies", "who", "why"];
    let mut object = JsonObject::read(body, &known, DEPTH)?;
    let seconds = object.required("seconds", seconds);
    let sample = object.optional("sample", percent);
    let bodies = object.optional("bodies", bodies);
    let attribution = read_attribution(&mut object);
    match seconds {
        Some(time) if object.problems.is_empty() => Ok(RecordingBody {
            request: RecordingRequest {
                time,
                sample: sample.unwrap_or(Percent::ALL),
                bodies,
            },
            attribution,
        }),
        _ => Err(object.problems),
    }
}

/// The origin of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// The author.
    pub who: String,
    /// The reason, if given.
    pub why: Option<String>,
}

fn read_attribution(object: &mut JsonObject<'_>) -> Attribution {
    let who = object.optional("who", who);
    Attribution {
        who: user_or_default(who),
        why: object.optional("why", why),
    }
}

/// Reads the optional body of a change without parameters, such as `{"who": "anna", "why": "ticket 7"}`.
pub(super) fn attribution(body: &Bytes) -> Result<Attribution, Vec<BodyProblem>> {
    if body.is_empty() {
        return Ok(Attribution {
            who: user_or_default(None),
            why: None,
        });
    }
    let mut object = JsonObject::read(body, &["who", "why"], DEPTH)?;
    let attribution = read_attribution(&mut object);
    if object.problems.is_empty() {
        Ok(attribution)
    } else {
        Err(object.problems)
    }
}

/// Replaces the author by the owner of the token; a different name in the body is appended.
pub(super) fn with_token_owner(attribution: Attribution, bearer: Option<&str>) -> Attribution {
    let Attribution { who, why } = attribution;
    let who = match bearer {
        None => who,
        Some(name) if who == NAMELESS || who == name => name.to_owned(),
        Some(name) => format!("{name} ({who})"),
    };
    Attribution { who, why }
}

fn user_or_default(who: Option<String>) -> String {
    who.unwrap_or_else(|| NAMELESS.to_owned())
}

/// The members of an object, and the problems found so far.
pub(super) struct JsonObject<'b> {
    members: Vec<(Cow<'b, str>, &'b [u8])>,
    pub(super) problems: Vec<BodyProblem>,
}

impl<'b> JsonObject<'b> {
    pub(super) fn read(
        body: &'b Bytes,
        known: &[&'static str],
        depth: u16,
    ) -> Result<Self, Vec<BodyProblem>> {
        let mut places = Vec::new();
        scan_object(body, depth, |member| places.push(member)).map_err(|f| vec![no_json(&f)])?;
        let mut object = JsonObject {
            members: Vec::with_capacity(places.len()),
            problems: Vec::new(),
        };
        for MemberSpan { name, value } in places {
            let name = decode(&body[name]).unwrap_or(Cow::Borrowed("\u{fffd}"));
            if !known.contains(&name.as_ref()) {
                object.problems.push(unknown(&name, known));
            } else if object.members.iter().any(|(other, _)| *other == name) {
                let twice = BodyProblem::new(&name, "duplicate member");
                object.problems.push(twice);
            } else {
                object.members.push((name, &body[value]));
            }
        }
        Ok(object)
    }

    fn required<T>(&mut self, name: &str, kind: Decoder<T>) -> Option<T> {
        if !self.members.iter().any(|(known, _)| known == name) {
            let missing = BodyProblem::new(name, "missing member");
            self.problems.push(missing);
        }
        self.optional(name, kind)
    }

    pub(super) fn optional<T>(&mut self, name: &str, kind: Decoder<T>) -> Option<T> {
        let (_, value) = self.members.iter().find(|(known, _)| known == name)?;
        match kind(value) {
            Ok(value) => Some(value),
            Err((message, hint)) => {
                let mut problem = BodyProblem::new(name, message);
                problem.hint = hint;
                self.problems.push(problem);
                None
            }
        }
    }
}

/// A decoder of a member's JSON text; fails with a message and an optional hint.
pub(super) type Decoder<T> = fn(&[u8]) -> Result<T, (String, Option<String>)>;

fn no_json(fault: &JsonFault) -> BodyProblem {
    BodyProblem::new("body", fault.to_string())
}

fn unknown(name: &str, known: &[&'static str]) -> BodyProblem {
    let mut problem = BodyProblem::new(name, format!("unknown member; known: {}", quoted(known)));
    problem.hint = meant(nearest(name, known.iter().copied()));
    problem
}

fn stage(text: &[u8]) -> Result<Stage, (String, Option<String>)> {
    let words = Stage::ALL.map(Stage::as_str);
    let allowed = || format!("write {}", quoted(&words));
    let word = string(text).ok_or_else(|| (format!("not a string; {}", allowed()), None))?;
    Stage::parse(&word).ok_or_else(|| {
        let message = format!("`{}` is not a stage; {}", shown(&word), allowed());
        (message, meant(nearest(&word, words)))
    })
}

fn percent(text: &[u8]) -> Result<Percent, (String, Option<String>)> {
    let text = String::from_utf8_lossy(text);
    let number = (kind_of(text.as_bytes()) == JsonKind::Number).then_some(&*text);
    number.and_then(Percent::parse_number).ok_or_else(|| {
        let message = format!(
            "{} is not a percentage; write a number from 0 to 100 in steps of 0.001",
            shown(&text)
        );
        (message, None)
    })
}

fn seconds(text: &[u8]) -> Result<Duration, (String, Option<String>)> {
    let text = String::from_utf8_lossy(text);
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| (1..=LONGEST_RECORDING).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let message = format!("write whole seconds from 1 to {LONGEST_RECORDING}");
        (message, None)
    })
}

fn bodies(text: &[u8]) -> Result<RecordedBodies, (String, Option<String>)> {
    match text {
        b"true" => Ok(RecordedBodies::Redacted),
        b"false" => Ok(RecordedBodies::Omitted),
        _ => Err(("write `true` or `false`".to_owned(), None)),
    }
}

fn who(text: &[u8]) -> Result<String, (String, Option<String>)> {
    let fits = |who: &String| {
        (1..=LONGEST_WHO).contains(&who.chars().count())
            && !who.trim().is_empty()
            && !who.chars().any(char::is_control)
    };
    string(text).filter(fits).ok_or_else(|| {
        let message = format!("write a name of 1 to {LONGEST_WHO} characters");
        (message, None)
    })
}

fn why(text: &[u8]) -> Result<String, (String, Option<String>)> {
    let fits = |why: &String| {
        (1..=LONGEST_WHY).contains(&why.chars().count()) && !why.chars().any(char::is_control)
    };
    string(text).filter(fits).ok_or_else(|| {
        let message = format!("write a reason of 1 to {LONGEST_WHY} characters");
        (message, None)
    })
}

fn string(text: &[u8]) -> Option<String> {
    let json = Json::parse(Bytes::copy_from_slice(text), DEPTH).ok()?;
    json.text()?.ok()
}

fn meant(word: Option<&str>) -> Option<String> {
    word.map(|word| format!("did you mean `{word}`?"))
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

/// Returns the first characters of a text, for a message.
fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<((Stage, Percent), Attribution), Vec<BodyProblem>> {
        flip(&Bytes::copy_from_slice(body.as_bytes()))
    }

    fn problems(body: &str) -> Vec<String> {
        let problems = read(body).unwrap_err().into_iter();
        problems
            .map(|p| match p.hint {
                Some(hint) => format!("{}: {} ({hint})", p.place, p.message),
                None => format!("{}: {}", p.place, p.message),
            })
            .collect()
    }

    #[test]
    fn a_flip_is_stage_and_percent_and_perhaps_a_name() {
        let ((stage, percent), attribution) =
            read(r#"{"stage":"translate","percent":25}"#).unwrap();
        assert_eq!(stage, Stage::Translate);
        assert_eq!(percent.thousandths(), 25_000);
        assert_eq!(attribution.who, "admin api");
        assert_eq!(attribution.why, None);
        let (_, attribution) =
            read(r#"{"who":"Änne","why":"ticket 7","stage":"retired","percent":0}"#).unwrap();
        assert_eq!(attribution.who, "Änne");
        assert_eq!(attribution.why.as_deref(), Some("ticket 7"));
    }

    #[test]
    fn a_percentage_is_exact_in_every_spelling_of_the_number() {
        let cases = [
            ("0", 0),
            ("100", 100_000),
            ("100.000", 100_000),
            ("33.333", 33_333),
            ("0.29", 290),
            ("1e1", 10_000),
            ("1E-3", 1),
            ("2.5e+1", 25_000),
        ];
        for (spelling, thousandths) in cases {
            let ((_, percent), _) =
                read(&format!(r#"{{"stage":"retired","percent":{spelling}}}"#)).unwrap();
            assert_eq!(percent.thousandths(), thousandths, "{spelling}");
        }
        let refused = [
            "-1", "100.001", "0.0001", "1e-4", "1e999", "\"25\"", "null", "[25]", "true",
        ];
        for spelling in refused {
            let said = problems(&format!(r#"{{"stage":"retired","percent":{spelling}}}"#));
            assert!(
                said[0].contains("is not a percentage"),
                "{spelling}: {said:?}"
            );
        }
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        assert_eq!(
            problems(r#"{"stage":"translat","percnt":25,"who":" ","who":"x"}"#),
            [
                "percnt: unknown member; known: `stage`, `percent`, `who`, `why` (did you mean `percent`?)",
                "who: duplicate member",
                "stage: `translat` is not a stage; write `passthrough`, `shadow`, `verify`, `translate`, `retired` \
                 (did you mean `translate`?)",
                "percent: missing member",
                "who: write a name of 1 to 100 characters",
            ]
        );
    }

    #[test]
    fn a_body_that_is_not_a_json_object_is_refused_with_its_position() {
        assert_eq!(
            problems("{\"stage\":tru}")[0],
            "body: byte 9: expected `true`, `false` or `null`"
        );
        for body in ["", "[]", "{}x", "{\"a\":1,}", "\u{feff}{}"] {
            let said = problems(body);
            assert_eq!(said.len(), 1, "{body}");
            assert!(said[0].starts_with("body: "), "{said:?}");
        }
    }

    #[test]
    fn the_token_owner_is_named_whatever_the_body_contains() {
        let with_token_owner = |who: &str, bearer| {
            let who = who.to_owned();
            with_token_owner(Attribution { who, why: None }, bearer).who
        };
        assert_eq!(with_token_owner("bob", None), "bob");
        assert_eq!(with_token_owner("admin api", Some("anna")), "anna");
        assert_eq!(with_token_owner("anna", Some("anna")), "anna");
        assert_eq!(with_token_owner("bob", Some("anna")), "anna (bob)");
    }

    #[test]
    fn a_name_alone_may_be_missing() {
        let read = |body: &'static str| attribution(&Bytes::from_static(body.as_bytes()));
        assert_eq!(read("").unwrap().who, "admin api");
        assert_eq!(read("{}").unwrap().who, "admin api");
        assert_eq!(read(r#"{"who":"anna"}"#).unwrap().who, "anna");
        assert!(read(r#"{"stage":"retired"}"#).is_err());
        assert!(read(r#"{"who":"a\nb"}"#).is_err());
    }
}
