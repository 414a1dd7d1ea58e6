//! Errors of the admin listener as `application/problem+json` (RFC 9457). Used by `admin`.

use std::error::Error;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ETAG, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::Value;

use crate::config::problem::Problems;
use crate::server::admin::Refusal;
use crate::server::admin::access::AccessDenied;
use crate::server::admin::decode::BodyProblem;
use crate::server::admin::routes::NotFound;
use crate::server::admin::token::AuthError;
use crate::telemetry::recorder::StartRefused;

/// An error response.
#[derive(Debug)]
pub(super) struct AdminProblem {
    status: StatusCode,
    detail: String,
    hint: Option<String>,
    problems: Vec<Value>,
    allow: Option<&'static str>,
    /// The current entity tag, if the request names another one.
    tag: Option<String>,
}

#[derive(Serialize)]
struct ProblemDocument<'p> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'p str>,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    problems: &'p [Value],
}

impl AdminProblem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        AdminProblem {
            status,
            detail: detail.into(),
            hint: None,
            problems: Vec::new(),
            allow: None,
            tag: None,
        }
    }

    /// Renders the response.
    pub(super) fn render(&self) -> Response<Full<Bytes>> {
        let document = ProblemDocument {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            hint: self.hint.as_deref(),
            problems: &self.problems,
        };
        let mut response = json(self.status, "application/problem+json", &document);
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        }
        if let Some(allow) = self.allow {
            let allow = HeaderValue::from_static(allow);
            response.headers_mut().insert(ALLOW, allow);
        }
        match &self.tag {
            Some(tag) => tagged(response, tag),
            None => response,
        }
    }
}

/// Creates the error that the proxy cannot answer now.
pub(super) fn unavailable(detail: &'static str) -> AdminProblem {
    AdminProblem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// Creates the response that a limit is reached. Its connection closes, so that the client does not occupy it.
pub(super) fn busy(detail: &'static str) -> Response<Full<Bytes>> {
    let mut response = unavailable(detail).render();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// Creates a response that no cache stores and no browser sniffs for another type.
pub(super) fn response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Adds an entity tag to a response (RFC 9110 §8.8.3).
pub(super) fn tagged(mut response: Response<Full<Bytes>>, tag: &str) -> Response<Full<Bytes>> {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{tag}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The media type of JSON.
pub(super) const JSON: &str = "application/json";

/// Creates a JSON response with status 200.
pub(super) fn ok(value: &impl Serialize) -> Response<Full<Bytes>> {
    json(StatusCode::OK, JSON, value)
}

/// Creates a JSON response.
pub(super) fn json(
    status: StatusCode,
    content_type: &'static str,
    value: &impl Serialize,
) -> Response<Full<Bytes>> {
    match serde_json::to_vec(value) {
        Ok(mut text) => {
            text.push(b'\n');
            response(status, content_type, text)
        }
        // Unreachable for the types of this API: their map keys are strings, and their numbers finite.
        Err(error) => response(
            StatusCode::INTERNAL_SERVER_ERROR,
            "text/plain; charset=utf-8",
            format!("{error}\n"),
        ),
    }
}

impl From<AccessDenied> for AdminProblem {
    fn from(denied: AccessDenied) -> Self {
        let status = match denied {
            AccessDenied::NoHost | AccessDenied::OtherTarget => StatusCode::BAD_REQUEST,
            AccessDenied::ForeignHost | AccessDenied::ForeignOrigin | AccessDenied::ForeignSite => {
                StatusCode::FORBIDDEN
            }
        };
        AdminProblem::new(status, denied.to_string())
    }
}

impl From<AuthError> for AdminProblem {
    fn from(barred: AuthError) -> Self {
        let status = match barred {
            AuthError::Closed => StatusCode::FORBIDDEN,
            AuthError::Missing | AuthError::Unknown => StatusCode::UNAUTHORIZED,
        };
        let mut problem = AdminProblem::new(status, barred.to_string());
        if status == StatusCode::UNAUTHORIZED {
            problem.hint = Some("send `Authorization: Bearer TOKEN`".to_owned());
        }
        problem
    }
}

impl From<NotFound> for AdminProblem {
    fn from(lost: NotFound) -> Self {
        match lost {
            NotFound::NotFound => {
                AdminProblem::new(StatusCode::NOT_FOUND, "no resource at this path")
            }
            NotFound::Method { allow } => {
                let detail = format!("this path allows {allow}");
                let mut problem = AdminProblem::new(StatusCode::METHOD_NOT_ALLOWED, detail);
                problem.allow = Some(allow);
                problem
            }
        }
    }
}

impl From<Vec<BodyProblem>> for AdminProblem {
    fn from(problems: Vec<BodyProblem>) -> Self {
        let detail = "the body is not valid";
        let mut problem = AdminProblem::new(StatusCode::BAD_REQUEST, detail);
        problem.problems = problems.iter().map(value).collect();
        problem
    }
}

impl From<Refusal> for AdminProblem {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Unknown { .. } | Refusal::UnknownRoute { .. } => StatusCode::NOT_FOUND,
            Refusal::Stale { .. } => StatusCode::PRECONDITION_FAILED,
            Refusal::Lost
            | Refusal::Governed { .. }
            | Refusal::Fault(_)
            | Refusal::NoRecordings
            | Refusal::Recording(StartRefused::Running) => StatusCode::CONFLICT,
            Refusal::Invalid(_) | Refusal::Config(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Refusal::Unread(_)
            | Refusal::Store(_)
            | Refusal::Recording(
                StartRefused::File { .. } | StartRefused::TimedOut { .. } | StartRefused::Ending,
            )
            | Refusal::Pending(_)
            | Refusal::PendingKill(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Unwritable(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut problem = AdminProblem::new(status, refusal.to_string());
        match refusal {
            Refusal::Unknown { nearest } | Refusal::UnknownRoute { nearest } => {
                problem.hint = nearest.map(|name| format!("did you mean `{name}`?"));
            }
            Refusal::Invalid(problems) | Refusal::Config(problems) => {
                problem.problems = values(&problems);
            }
            Refusal::Unread(error) => problem.detail = with_causes(&problem.detail, &error),
            Refusal::Store(error) => problem.detail = with_causes(&problem.detail, &error),
            Refusal::Pending(error) | Refusal::PendingKill(error) => {
                problem.detail = with_causes(&problem.detail, &error)
            }
            Refusal::Unwritable(error) => problem.detail = with_causes(&problem.detail, &error),
            Refusal::Recording(error) => problem.detail = with_causes(&problem.detail, &error),
            Refusal::Stale { found, .. } => {
                let hint = format!("send `If-Match: \"{found}\"` to change the current version");
                problem.hint = Some(hint);
                problem.tag = Some(found);
            }
            Refusal::Lost
            | Refusal::Governed { .. }
            | Refusal::Fault(_)
            | Refusal::NoRecordings => {}
        }
        problem
    }
}

fn value(problem: &BodyProblem) -> Value {
    serde_json::json!(problem)
}

fn values(problems: &Problems) -> Vec<Value> {
    problems
        .iter()
        .map(|problem| {
            serde_json::json!({
                "place": problem.place.to_string(),
                "key": problem.key,
                "message": problem.message,
                "hint": problem.hint,
            })
        })
        .collect()
}

fn with_causes(text: &str, cause: &dyn Error) -> String {
    let mut text = format!("{text}: {cause}");
    let mut cause = cause.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
