//! The response of a source of flags: the evaluations of all its flags.
//!
//! ```text
//! {"stage": "translate", "percent": 5}   stage and percentage; one of them may be absent
//! "translate"                            stage, for all callers
//! 5                                      percentage, with the stage of the flags file
//! ```
//!
//! Laws: a flag without a value, or with the error `FLAG_NOT_FOUND`, is not governed by the source; any other value
//! that has no such form is reported for its flag only.
//!
//! Used by `ofrep`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::rollout::{Percent, ReceivedValues, SourcedValue, Stage};

/// The most flags of this proxy in a response.
pub const MOST_SOURCED: usize = 10_000;

/// The reason why a response cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResponseFault {
    /// It is not the response of OFREP.
    #[error("the response is not one of OFREP: {0}")]
    Form(String),
    /// It has too many flags.
    #[error("the response has more than {MOST_SOURCED} flags with this prefix")]
    TooMany,
}

/// All evaluations, as `bulkEvaluationSuccess` of the OpenAPI document.
#[derive(Deserialize)]
struct Bulk<'t> {
    #[serde(borrow)]
    flags: Vec<Evaluation<'t>>,
}

/// `evaluationSuccess` or `evaluationFailure`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluation<'t> {
    key: Option<String>,
    #[serde(borrow)]
    value: Option<&'t RawValue>,
    reason: Option<String>,
    error_code: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Values<'t> {
    stage: Option<String>,
    #[serde(borrow)]
    percent: Option<&'t RawValue>,
}

/// Reads the values of the keys with a prefix; the rest of a key is the name of the flag.
///
/// # Errors
/// [`ResponseFault`] if the response cannot be used at all.
pub fn read_sourced(body: &[u8], prefix: &str) -> Result<ReceivedValues, ResponseFault> {
    let bulk: Bulk<'_> =
        serde_json::from_slice(body).map_err(|error| ResponseFault::Form(shown(&error)))?;
    let mut values = ReceivedValues::new();
    for evaluation in bulk.flags {
        let key = evaluation.key.as_deref();
        let Some(name) = key.and_then(|key| key.strip_prefix(prefix)) else {
            continue;
        };
        let value = evaluation.value().transpose();
        let known = values.get(name).filter(|known| **known != Ok(None));
        if value == Ok(None) && known.is_some() {
            continue;
        }
        if known.is_some_and(|known| *known != value) {
            let twice = "the source has two values for it".to_owned();
            values.insert(name.to_owned(), Err(twice));
            continue;
        }
        if values.len() == MOST_SOURCED && !values.contains_key(name) {
            return Err(ResponseFault::TooMany);
        }
        values.insert(name.to_owned(), value);
    }
    Ok(values)
}

impl Evaluation<'_> {
    /// Returns the value; `None` if the source has none for this flag.
    fn value(&self) -> Option<Result<SourcedValue, String>> {
        match self.error_code.as_deref() {
            Some("FLAG_NOT_FOUND") => return None,
            Some(code) => return Some(Err(format!("the source reports `{}`", cut(code)))),
            None => {}
        }
        if self.reason.as_deref() == Some("DISABLED") {
            return Some(Ok(SourcedValue::Off));
        }
        self.value.map(|value| read(value.get()))
    }
}

fn read(text: &str) -> Result<SourcedValue, String> {
    match text.as_bytes().first() {
        Some(b'"') => {
            let word: String = serde_json::from_str(text).map_err(|error| shown(&error))?;
            Ok(SourcedValue::On {
                stage: Some(stage(&word)?),
                percent: Percent::ALL,
            })
        }
        Some(b'{') => object(text),
        Some(b'-' | b'0'..=b'9') => Ok(SourcedValue::On {
            stage: None,
            percent: percent(text)?,
        }),
        Some(_) | None => Err(format!(
            "`{}` is neither a stage, nor a percentage, nor an object of both",
            cut(text)
        )),
    }
}

fn object(text: &str) -> Result<SourcedValue, String> {
    let values: Values<'_> = serde_json::from_str(text).map_err(|error| shown(&error))?;
    if values.stage.is_none() && values.percent.is_none() {
        return Err("neither `stage` nor `percent`".to_owned());
    }
    let percent = values.percent.map(|value| percent(value.get()));
    Ok(SourcedValue::On {
        stage: values.stage.as_deref().map(stage).transpose()?,
        percent: percent.transpose()?.unwrap_or(Percent::ALL),
    })
}

fn stage(word: &str) -> Result<Stage, String> {
    Stage::parse(word).ok_or_else(|| format!("`{}` is not a stage", cut(word)))
}

fn percent(text: &str) -> Result<Percent, String> {
    let wrong = || {
        let shown = cut(text);
        format!("`{shown}` is not a percentage from 0 to 100 in steps of 0.001")
    };
    Percent::parse_number(text).ok_or_else(wrong)
}

/// Returns the beginning of a text that is shown to people.
fn cut(text: &str) -> String {
    cut_to(60, text)
}

/// Describes an error of the reader, which may quote a name or a text of any length.
fn shown(error: &serde_json::Error) -> String {
    cut_to(90, &error.to_string())
}

fn cut_to(longest: usize, text: &str) -> String {
    let mut shown: String = text.chars().take(longest).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown.escape_debug().to_string()
}

/// Reads any bytes as the response of a source: values that can be written and read again, or refused. For fuzzing.
///
/// # Panics
/// If a law does not hold.
pub fn check_any_response(data: &[u8]) {
    let values = match read_sourced(data, "flag:") {
        Ok(values) => values,
        Err(fault) => {
            let text = fault.to_string();
            assert!(text.len() < 1000, "{text}");
            return;
        }
    };
    for value in values.values() {
        match value {
            Ok(value) => {
                let text = serde_json::to_string(value);
                let again =
                    text.and_then(|text| serde_json::from_str::<Option<SourcedValue>>(&text));
                assert!(again.is_ok_and(|again| again == *value), "{value:?}");
            }
            Err(problem) => assert!(problem.len() < 1000, "{problem}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(evaluation: &str) -> Option<Result<String, String>> {
        let body = format!(r#"{{"flags":[{{"key":"flag:a",{evaluation}}}]}}"#);
        let mut values = read_sourced(body.as_bytes(), "flag:").unwrap();
        let value = values.remove("a")?.transpose()?;
        Some(value.map(|value| value.to_string()))
    }

    #[test]
    fn a_value_has_one_of_three_forms() {
        for (evaluation, expected) in [
            (
                r#""value":{"stage":"translate","percent":5}"#,
                "translate 5 %",
            ),
            (
                r#""value":{"percent":33.333,"stage":"shadow"}"#,
                "shadow 33.333 %",
            ),
            (r#""value":{"stage":"verify"}"#, "verify 100 %"),
            (r#""value":{"percent":0}"#, "0 %"),
            (
                r#""value":"retired","reason":"STATIC","variant":"on""#,
                "retired 100 %",
            ),
            (r#""value":12.5"#, "12.5 %"),
            (r#""value":1e1,"metadata":{"a":1}"#, "10 %"),
            (
                r#""reason":"DISABLED","value":{"stage":"translate","percent":5}"#,
                "off",
            ),
            (r#""reason":"DISABLED""#, "off"),
        ] {
            assert_eq!(
                one(evaluation),
                Some(Ok(expected.to_owned())),
                "{evaluation}"
            );
        }
    }

    #[test]
    fn a_flag_without_a_value_is_not_governed() {
        for evaluation in [
            r#""errorCode":"FLAG_NOT_FOUND""#,
            r#""reason":"DEFAULT""#,
            r#""value":null"#,
        ] {
            assert_eq!(one(evaluation), None, "{evaluation}");
        }
        let other = br#"{"flags":[{"key":"stage:a","value":"x"},{"key":"new:a","value":true},{}]}"#;
        assert_eq!(read_sourced(other, "flag:").unwrap().len(), 0);
    }

    #[test]
    fn another_value_is_reported_for_its_flag() {
        for (evaluation, expected) in [
            (r#""value":true"#, "`true` is neither a stage"),
            (r#""value":[]"#, "neither a stage"),
            (r#""value":{}"#, "neither `stage` nor `percent`"),
            (r#""value":{"stage":"new"}"#, "`new` is not a stage"),
            (
                r#""value":{"stage":"shadow","percentage":5}"#,
                "unknown field `percentage`",
            ),
            (r#""value":{"percent":"5"}"#, "is not a percentage"),
            (r#""value":100.001"#, "is not a percentage"),
            (r#""value":-1"#, "is not a percentage"),
            (
                r#""errorCode":"TARGETING_KEY_MISSING""#,
                "the source reports `TARGETING_KEY_MISSING`",
            ),
            (r#""value":1},{"key":"flag:a","value":2"#, "two values"),
        ] {
            let problem = one(evaluation).unwrap().unwrap_err();
            assert!(problem.contains(expected), "{evaluation}: {problem}");
        }
    }

    #[test]
    fn another_response_is_refused_as_a_whole() {
        for body in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"flags":{}}"#,
            r#"{"flags":[{"key":7}]}"#,
        ] {
            assert!(read_sourced(body.as_bytes(), "flag:").is_err(), "{body}");
        }
        let flags = (0..=MOST_SOURCED).map(|number| format!(r#"{{"key":"f{number}","value":1}}"#));
        let flags = flags.collect::<Vec<_>>().join(",");
        let body = format!(r#"{{"flags":[{flags}]}}"#);
        let fault = read_sourced(body.as_bytes(), "f").unwrap_err();
        assert!(matches!(fault, ResponseFault::TooMany));
        assert_eq!(read_sourced(body.as_bytes(), "g").unwrap().len(), 0);
    }
}
