//! Turns a recorded call into a request and a control, or says why it cannot be sent. Used by `driver` and `replay`.
//!
//! Credentials of the file are never sent: recordings have none, and those of a HAR file are dropped.

use std::sync::Arc;
use std::time::Duration;

use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};

use super::calls::{FileCall, FileKind};
use super::way::ReplayWay;
use crate::gateway::{Control, ControlOrigin, HeaderExtent, RecordedCall, RecordedControl};
use dualgauge_model::plan::Plan;
use dualgauge_recording::recording::{
    Headers, RecordedBody, RecordedRequest, RecordedResponse, Responder,
};

/// Headers of the recorded connection, and those that the sent request gets anew.
static DROPPED: [HeaderName; 9] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// A call that can be sent.
pub(super) struct Prepared {
    pub(super) call: RecordedCall,
    pub(super) control: Control,
    pub(super) redacted: Redacted,
}

/// The part of a call that has placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redacted {
    None,
    /// Only the recorded response.
    Response,
    /// The request, and perhaps the response.
    Request,
}

/// The reason why a call of the file cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsendable {
    /// Its method, target or a header is invalid.
    Invalid,
    /// The body of the request was not recorded.
    NoBody,
    /// The body of the request may have been cut.
    Incomplete,
    /// The client received no response.
    NoResponse,
    /// The new server gave the recorded response, so it says nothing about the old one.
    AnsweredByNew,
}

impl Unsendable {
    /// Returns the name of the reason.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Unsendable::Invalid => "invalid",
            Unsendable::NoBody => "body_not_recorded",
            Unsendable::Incomplete => "incomplete",
            Unsendable::NoResponse => "no_response",
            Unsendable::AnsweredByNew => "answered_by_new",
        }
    }
}

/// The rules by which calls are prepared.
pub(super) struct Preparer {
    way: ReplayWay,
    /// Headers of every call.
    given: Vec<(HeaderName, HeaderValue)>,
    plan: Arc<Plan>,
}

impl Preparer {
    pub(super) fn new(plan: &Arc<Plan>, way: ReplayWay, given: &[(String, String)]) -> Preparer {
        let given = given.iter().filter_map(|(name, value)| header(name, value));
        let given = given.map(|(name, mut value)| {
            value.set_sensitive(true);
            (name, value)
        });
        Preparer {
            way,
            given: given.collect(),
            plan: plan.clone(),
        }
    }

    /// Prepares a call.
    pub(super) fn prepare(&self, file_call: FileCall) -> Result<Prepared, Unsendable> {
        let FileCall { call, kind, .. } = file_call;
        let redacted = match call.redacted.as_slice() {
            [] => Redacted::None,
            places if places.iter().any(|place| place.starts_with("request")) => Redacted::Request,
            _ => Redacted::Response,
        };
        let has_request_body = !call.request.body.is_empty();
        if !call.complete && kind == FileKind::Recording && has_request_body {
            return Err(Unsendable::Incomplete);
        }
        let request = self.request(&call.request, &call.redacted)?;
        let control = match (self.way, call.response) {
            (ReplayWay::Both, _) => Control::Live,
            (ReplayWay::New | ReplayWay::Old, None) => return Err(Unsendable::NoResponse),
            (ReplayWay::New | ReplayWay::Old, Some(response))
                if response.from == Responder::New =>
            {
                return Err(Unsendable::AnsweredByNew);
            }
            (ReplayWay::New, Some(response)) => Control::RecordedForNew(Box::new(control(
                response,
                &call.redacted,
                call.complete,
                kind,
            )?)),
            (ReplayWay::Old, Some(response)) => Control::RecordedForOld(Box::new(control(
                response,
                &call.redacted,
                call.complete,
                kind,
            )?)),
        };
        Ok(Prepared {
            call: request,
            control,
            redacted,
        })
    }

    fn request(
        &self,
        request: &RecordedRequest,
        redacted: &[String],
    ) -> Result<RecordedCall, Unsendable> {
        let invalid = |_| Unsendable::Invalid;
        let method: Method = request.method.parse().map_err(|_| Unsendable::Invalid)?;
        let target: Uri = request.target.parse().map_err(invalid)?;
        if !request.target.starts_with('/') {
            return Err(Unsendable::Invalid);
        }
        let body = request.body.content().ok_or(Unsendable::NoBody)?;
        let mut headers = self.headers(&request.headers, redacted)?;
        if matches!(request.body, RecordedBody::Json(_)) && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(
                CONTENT_TYPE,
                const { HeaderValue::from_static("application/json") },
            );
        }
        Ok(RecordedCall {
            method,
            target,
            headers,
            body,
        })
    }

    fn headers(&self, recorded: &Headers, redacted: &[String]) -> Result<HeaderMap, Unsendable> {
        let mut headers = HeaderMap::new();
        for (name, value) in recorded {
            let is_hidden = is_redacted_header("request.headers.", name, redacted);
            let (name, value) = header(name, value).ok_or(Unsendable::Invalid)?;
            if !is_hidden && !DROPPED.contains(&name) && !self.plan.is_secret(&name) {
                headers.append(name, value);
            }
        }
        for (name, value) in &self.given {
            headers.insert(name, value.clone());
        }
        Ok(headers)
    }
}

fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(name).ok()?;
    Some((name, HeaderValue::try_from(value).ok()?))
}

/// Returns true if the value of a header is a placeholder.
fn is_redacted_header(prefix: &str, name: &str, redacted: &[String]) -> bool {
    let mut places = redacted.iter();
    places.any(|place| place.strip_prefix(prefix) == Some(name))
}

fn control(
    response: RecordedResponse,
    redacted: &[String],
    is_complete: bool,
    kind: FileKind,
) -> Result<RecordedControl, Unsendable> {
    /// The place of the body, in the names of places with placeholders.
    const BODY: &str = "response.body";
    /// The most places that a recording lists; then more may be hidden.
    const MOST_PLACES: usize = 256;
    let mut headers = HeaderMap::new();
    for (name, value) in &response.headers {
        if !is_redacted_header("response.headers.", name, redacted) {
            let (name, value) = header(name, value).ok_or(Unsendable::Invalid)?;
            headers.append(name, value);
        }
    }
    let hidden: Vec<&str> = redacted
        .iter()
        .filter_map(|place| place.strip_prefix(BODY))
        .collect();
    let is_whole_hidden = hidden.iter().any(|place| place.is_empty());
    let is_known = is_complete && !is_whole_hidden && redacted.len() < MOST_PLACES;
    // The body of a REST response is compared under `/body`, that of a JSON-RPC response as it is.
    let hidden = hidden
        .iter()
        .flat_map(|place| [format!("/body{place}"), (*place).to_owned()]);
    Ok(RecordedControl {
        status: StatusCode::from_u16(response.status).map_err(|_| Unsendable::Invalid)?,
        headers,
        extent: match kind {
            FileKind::Recording => HeaderExtent::Allowed,
            FileKind::Har => HeaderExtent::All,
        },
        origin: match response.from {
            Responder::Proxy => ControlOrigin::Proxy,
            Responder::Old | Responder::New => ControlOrigin::Server,
        },
        body: response.body.content().filter(|_| is_known),
        redacted: hidden.filter(|place| !place.is_empty()).collect(),
        time: (response.latency_us > 0).then(|| Duration::from_micros(response.latency_us)),
    })
}
