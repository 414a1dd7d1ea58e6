//! Problem documents (RFC 9457): errors for REST clients that contain the RPC error, and the way back.
//!
//! Used by `frame`, `outcome` and `gateway`.

use http::StatusCode;

use super::response::RestAnswer;
use crate::failure::{Advice, Failure, FailureCodes, Pause};
use crate::jsonrpc::ErrorObject;
use dualgauge_patterns::json::{Json, JsonKind, is_integer};
use dualgauge_patterns::rope::RopeWriter;

/// The content type of a problem document.
pub(super) const PROBLEM: &str = "application/problem+json";

/// Converts a failure to an RPC error.
#[must_use]
pub fn error_object(failure: &Failure, codes: &FailureCodes) -> ErrorObject {
    let row = failure.reason.row();
    let mut data = format!(
        r#"{{"reason":"{}","blame":"{}""#,
        row.label,
        row.blame.as_str()
    );
    if let Some(Advice::Successor { name, pause, .. }) = failure.advice.as_deref() {
        data.push_str(r#","successor":"#);
        data.push_str(&String::from_utf8_lossy(Json::string(name).as_bytes()));
        if let Some(Pause { until, sunset, .. }) = pause {
            data.push_str(&format!(r#","until":"{until}""#));
            if let Some(sunset) = sunset {
                data.push_str(&format!(r#","sunset":"{sunset}""#));
            }
        }
    }
    if let Some(Advice::Versions {
        supported,
        requested,
    }) = failure.advice.as_deref()
    {
        let versions = serde_json::json!({ "supported": supported, "requested": requested });
        let versions = versions.to_string();
        data.push(',');
        data.push_str(versions.trim_start_matches('{').trim_end_matches('}'));
    }
    if let Some(Advice::Capabilities(required)) = failure.advice.as_deref() {
        data.push_str(r#","requiredCapabilities":"#);
        data.push_str(&String::from_utf8_lossy(required.as_bytes()));
    }
    if let Some(detail) = &failure.detail {
        data.push_str(r#","upstream":"#);
        data.push_str(&String::from_utf8_lossy(detail.as_bytes()));
    }
    data.push('}');
    ErrorObject {
        code: codes.of(failure.reason).into(),
        message: Json::string(&failure.message),
        data: Some(Json::written(data)),
    }
}

/// Converts a failure to a problem document.
#[must_use]
pub fn problem(failure: &Failure, codes: &FailureCodes) -> RestAnswer {
    let row = failure.reason.row();
    let mut extra = format!(
        r#""reason":"{}","blame":"{}","#,
        row.label,
        row.blame.as_str()
    );
    if let Some(status) = failure.upstream_status {
        extra.push_str(&format!(r#""upstream_status":{status},"#));
    }
    write_problem(row.status, &extra, &error_object(failure, codes))
}

/// Converts an RPC error to a problem document that contains its code, message and data.
pub(crate) fn write_problem(status: u16, extra: &str, error: &ErrorObject) -> RestAnswer {
    let mut writer = RopeWriter::with_capacity(256);
    let title = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    writer.copy(b"{\"type\":\"about:blank\",\"title\":");
    writer.copy(Json::string(title.unwrap_or("Error")).as_bytes());
    writer.copy(format!(",\"status\":{status},\"detail\":").as_bytes());
    writer.value(&error.message);
    writer.copy(b",");
    writer.copy(extra.as_bytes());
    writer.copy(format!("\"rpc\":{{\"code\":{},\"message\":", error.code).as_bytes());
    writer.value(&error.message);
    if let Some(data) = &error.data {
        writer.copy(b",\"data\":");
        writer.value(data);
    }
    writer.copy(b"}}");
    RestAnswer {
        status,
        content_type: Some(PROBLEM.to_owned()),
        headers: Vec::new(),
        body: writer.finish(),
    }
}

/// Returns the RPC error in a problem document that [`write_problem`] wrote.
pub(super) fn read_problem(content_type: &str, body: &Json) -> Option<ErrorObject> {
    if !content_type.eq_ignore_ascii_case(PROBLEM) {
        return None;
    }
    let rpc = body.member("rpc")?;
    let code = rpc
        .member("code")
        .filter(|code| is_integer(code.as_bytes()))?;
    let code = std::str::from_utf8(code.as_bytes()).ok()?.parse().ok()?;
    let message = rpc
        .member("message")
        .filter(|message| message.kind() == JsonKind::String)?;
    Some(ErrorObject {
        code,
        message,
        data: rpc.member("data"),
    })
}
