//! Responses to requests of OFREP, the OpenFeature Remote Evaluation Protocol. They change nothing.
//!
//! Used by `admin::response`.

use std::error::Error;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use serde::{Serialize, Serializer};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::api::AdminApi;
use super::problem::{AdminProblem, JSON, json, ok, response};
use super::response::{read, require_json};
use super::view::percent;
use crate::server::admin::{AdminCommand, OfrepCommand};
use dualgauge_model::ofrep::{Evaluated, EvaluatedValue, EvaluationFault};
use dualgauge_model::rollout::Percent;

#[derive(Serialize)]
struct Success<'e> {
    key: &'e str,
    #[serde(serialize_with = "value")]
    value: EvaluatedValue,
    reason: &'static str,
    variant: &'static str,
    metadata: Metadata<'e>,
}

#[derive(Serialize)]
struct Metadata<'e> {
    rule: &'e str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure<'e> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'e str>,
    error_code: &'static str,
    error_details: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'e> {
    Success(Success<'e>),
    Failure(Failure<'e>),
}

#[derive(Serialize)]
struct FlagValues {
    stage: &'static str,
    #[serde(serialize_with = "percent")]
    percent: Percent,
}

fn value<S: Serializer>(value: &EvaluatedValue, serializer: S) -> Result<S::Ok, S::Error> {
    match *value {
        EvaluatedValue::Stage(stage) => serializer.serialize_str(stage.as_str()),
        EvaluatedValue::IsNew(is_new) => serializer.serialize_bool(is_new),
        EvaluatedValue::Flag { stage, percent } => FlagValues {
            stage: stage.as_str(),
            percent,
        }
        .serialize(serializer),
    }
}

impl<'e> Success<'e> {
    fn new(found: &'e Evaluated) -> Success<'e> {
        Success {
            key: &found.key,
            value: found.value,
            reason: found.reason.as_str(),
            variant: found.variant,
            metadata: Metadata { rule: &found.rule },
        }
    }
}

impl<'e> Failure<'e> {
    fn new(key: Option<&'e str>, fault: &EvaluationFault) -> Failure<'e> {
        Failure {
            key,
            error_code: fault.code(),
            error_details: fault.to_string(),
        }
    }

    fn render(&self, fault: &EvaluationFault) -> Response<Full<Bytes>> {
        let status = match fault {
            EvaluationFault::NotFound => StatusCode::NOT_FOUND,
            EvaluationFault::Parse(_)
            | EvaluationFault::Context(_)
            | EvaluationFault::TargetingKey => StatusCode::BAD_REQUEST,
        };
        json(status, JSON, self)
    }
}

impl AdminApi {
    /// Evaluates one flag, or all flags without a key.
    pub(super) async fn evaluate<B>(
        &self,
        key: Option<String>,
        head: &Parts,
        body: B,
    ) -> Result<Response<Full<Bytes>>, AdminProblem>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let body = read(body).await?;
        if !body.is_empty() || head.headers.contains_key(CONTENT_TYPE) {
            require_json(head)?;
        }
        let Some(key) = key else {
            return self.evaluate_all(head, body).await;
        };
        let of = key.clone();
        let one = |reply| AdminCommand::Ofrep(OfrepCommand::One { key, body, reply });
        Ok(match self.ask(one).await? {
            Ok(found) => ok(&Success::new(&found)),
            Err(fault) => Failure::new(Some(&of), &fault).render(&fault),
        })
    }

    async fn evaluate_all(
        &self,
        head: &Parts,
        body: Bytes,
    ) -> Result<Response<Full<Bytes>>, AdminProblem> {
        let all = |reply| AdminCommand::Ofrep(OfrepCommand::All { body, reply });
        let found = match self.ask(all).await? {
            Ok(found) => found,
            Err(fault) => return Ok(Failure::new(None, &fault).render(&fault)),
        };
        let flags = found.iter().map(|one| match one {
            Ok(found) => Entry::Success(Success::new(found)),
            Err((key, fault)) => Entry::Failure(Failure::new(Some(key), fault)),
        });
        let text = json!({ "flags": flags.collect::<Vec<_>>() }).to_string();
        Ok(validated(&head.headers, text))
    }
}

/// Returns a text with its entity tag, or 304 if the requester has it (RFC 9110 §13.1.2).
fn validated(headers: &HeaderMap, text: String) -> Response<Full<Bytes>> {
    let digest = Sha256::digest(&text);
    let digits = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    let tag = format!("\"{}\"", digits.collect::<String>());
    let mut response = match has(headers, &tag) {
        true => response(StatusCode::NOT_MODIFIED, JSON, ""),
        false => response(StatusCode::OK, JSON, text),
    };
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// Returns true if `If-None-Match` names this tag; it compares weakly.
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter();
    let mut tags = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_tag_in_any_form_gets_no_body() {
        let tag = validated(&HeaderMap::new(), "{}".to_owned()).headers()[ETAG].clone();
        let tag = tag.to_str().unwrap().to_owned();
        let status = |values: &[String]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(IF_NONE_MATCH, value.parse().unwrap());
            }
            validated(&headers, "{}".to_owned()).status()
        };
        for known in [
            vec![tag.clone()],
            vec![format!("W/{tag}")],
            vec![format!("\"a\", {tag}")],
            vec!["\"a\"".to_owned(), tag.clone()],
            vec!["*".to_owned()],
        ] {
            assert_eq!(status(&known), StatusCode::NOT_MODIFIED, "{known:?}");
        }
        for other in [vec![], vec!["\"a\"".to_owned()], vec![tag.replace('"', "")]] {
            assert_eq!(status(&other), StatusCode::OK, "{other:?}");
        }
    }
}
