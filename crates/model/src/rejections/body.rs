//! Request bodies: their media types, and the failures of bodies that are neither JSON nor a form.
//!
//! Used by `explain` and `gateway`.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

use crate::failure::{Failure, Reason};
use crate::form::{self, BodyFormat, FormFault, FormType};
use crate::outcome::is_json;
use dualgauge_patterns::json::{Json, JsonFault};

/// Returns the failure of a body that is not JSON.
#[must_use]
pub fn no_json(fault: JsonFault) -> Failure {
    let reason = if fault.is_too_deep() {
        Reason::TooDeep
    } else {
        Reason::MalformedJson
    };
    Failure::new(reason, format!("body: {fault}"))
}

/// Returns the type of a form that a request declares; `None` if the route's body is JSON.
///
/// # Errors
/// The [`Failure`] for the client.
pub fn body_type(headers: &HeaderMap, format: BodyFormat) -> Result<Option<FormType>, Failure> {
    if !format.is_form() {
        return media_type(headers).map(|()| None);
    }
    let unsupported = |message: String| Failure::new(Reason::UnsupportedMediaType, message);
    one_type(headers)?;
    let wanted = format.media_type();
    let Some(kind) = headers.get(CONTENT_TYPE) else {
        return Err(unsupported(format!(
            "the request has no `Content-Type`; send the body as `{wanted}`"
        )));
    };
    let form_type = FormType::of(kind)
        .map_err(|fault| unsupported(format!("{fault}; send the body as `{wanted}`")))?;
    if form_type.format() == format {
        return Ok(Some(form_type));
    }
    let other = form_type.format().media_type();
    Err(unsupported(format!(
        "the content type `{other}` is not supported; send the body as `{wanted}`"
    )))
}

/// Returns the failure of a body that is not a form.
#[must_use]
pub fn no_form(fault: &FormFault) -> Failure {
    Failure::new(Reason::MalformedBody, format!("body: {fault}"))
}

fn one_type(headers: &HeaderMap) -> Result<(), Failure> {
    let is_twice = |name| headers.get_all(name).iter().nth(1).is_some();
    if is_twice(CONTENT_TYPE) || is_twice(CONTENT_ENCODING) {
        return Err(Failure::new(
            Reason::UnsupportedMediaType,
            "`Content-Type` or `Content-Encoding` is given twice; send each once",
        ));
    }
    Ok(())
}

/// Reads the body of a request as JSON, or as the object of a form; `None` for an empty body.
///
/// # Errors
/// The [`Failure`] for the client.
pub fn parse_body(
    body: Bytes,
    form_type: Option<&FormType>,
    depth: u16,
) -> Result<Option<Json>, Failure> {
    if body.is_empty() {
        return Ok(None);
    }
    match form_type {
        None => Json::read(body, depth).map(Some).map_err(no_json),
        Some(form_type) => form::decode(form_type, &body)
            .map(Some)
            .map_err(|fault| no_form(&fault)),
    }
}

/// Rejects media types other than JSON in UTF-8. A body without a content type is read as JSON.
///
/// # Errors
/// The [`Failure`] for the client.
pub fn media_type(headers: &HeaderMap) -> Result<(), Failure> {
    let unsupported = |message: String| Err(Failure::new(Reason::UnsupportedMediaType, message));
    one_type(headers)?;
    // Fast path for the usual value.
    let Some(kind) = headers
        .get(CONTENT_TYPE)
        .filter(|kind| *kind != "application/json")
    else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    if !matches!(
        essence,
        "application/json" | "application/json-rpc" | "application/jsonrequest"
    ) && !is_json(essence)
    {
        let shown = essence.escape_default();
        return unsupported(format!(
            "the content type `{shown}` is not supported; send `application/json`"
        ));
    }
    let charset = parts.find_map(|parameter| parameter.strip_prefix("charset="));
    match charset.map(|charset| charset.trim_matches('"')) {
        None | Some("utf-8" | "utf8") => Ok(()),
        Some(charset) => unsupported(format!(
            "the charset `{}` is not supported; JSON is UTF-8 (RFC 8259 §8.1)",
            charset.escape_default()
        )),
    }
}
