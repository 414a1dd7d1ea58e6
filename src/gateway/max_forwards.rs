//! Hop limits of TRACE and OPTIONS: `Max-Forwards` (RFC 9110 §7.6.2), and the content of a TRACE response (§9.3.8).
//!
//! Used by `gateway`.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, MAX_FORWARDS};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request};

use super::call_response::{CallResponse, FullResponse, acknowledgement};
use super::headers::named_by_connection;
use super::identity::identify;
use super::response;
use super::response_body::ResponseBody;
use super::serve::IncomingRequest;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::DecisionReason;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_patterns::rope::Rope;

/// Decrements `Max-Forwards`; returns true if the proxy is the final recipient. Other methods and invalid values are
/// left unchanged.
pub(super) fn decrement(head: &mut request::Parts) -> bool {
    match head.method {
        Method::TRACE | Method::OPTIONS => decrement_field(&mut head.headers),
        _ => false,
    }
}

#[cold]
fn decrement_field(headers: &mut HeaderMap) -> bool {
    let mut values = headers.get_all(MAX_FORWARDS).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let digits = value.as_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    // A number that exceeds 64 bits is larger than any number of hops.
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    match number.unwrap_or(u64::MAX) {
        0 => true,
        number => {
            headers.insert(MAX_FORWARDS, (number - 1).into());
            false
        }
    }
}

/// Responds as the final recipient.
pub(super) async fn respond(request: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        mut record,
        head,
        origin,
        ..
    } = request;
    identify(&mut record.context, &head.headers, &origin);
    let answer = record.context.admit().and_then(|()| {
        record.context.handle_locally(DecisionReason::Local);
        let runtime_plan = record.context.runtime_plan().clone();
        let plan = &runtime_plan.plan;
        routing::check_origin(plan, RequestHead::new(&head), origin.entry())?;
        let full = match head.method {
            Method::TRACE => trace_response(&head, plan),
            _ => acknowledgement(StatusCode::NO_CONTENT),
        };
        record.set_local_response(full.status.as_u16(), None);
        Ok(CallResponse::Full(Box::new(full)))
    });
    response::render(record, answer, None)
}

/// Returns the request as it arrived, without hop-by-hop fields and secrets.
fn trace_response(head: &request::Parts, plan: &Plan) -> FullResponse {
    let connection_fields = named_by_connection(&head.headers);
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let mut text = format!("TRACE {target} {:?}\r\n", head.version).into_bytes();
    for (name, value) in &head.headers {
        if super::headers::is_hop_by_hop(name)
            || connection_fields.contains(name)
            || plan.is_secret(name)
        {
            continue;
        }
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("message/http"));
    FullResponse {
        status: StatusCode::OK,
        headers,
        body: Rope::from(Bytes::from(text)),
    }
}
