//! Lines of access logs: the combined and common formats of nginx and Apache, and JSON objects.
//!
//! An access log has no bodies and no headers of requests; a line names the method, the target and the status of a call.
//! Laws: any bytes are a call or a fault; a call's method is a token, and its target begins with `/` and has no white space
//! or control characters.

use serde_json::{Map, Value};

/// The maximum length of a line in bytes.
pub const MAX_LINE: usize = 64 * 1024;

/// A call of an access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCall {
    /// The HTTP method.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The HTTP status, if the line has one.
    pub status: Option<u16>,
}

/// The reason why a line is no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// The line is too long.
    #[error("the line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8")]
    NotText,
    /// The line has no request.
    #[error(
        "the line has no request; known are the common and combined formats of nginx and Apache, and JSON objects with \
         `method` and `uri`, or `request`"
    )]
    NoRequest,
    /// The request is not one of HTTP with a path.
    #[error("the request is not a method and a path")]
    NotHttp,
}

/// Parses a line, without its line feed.
///
/// # Errors
/// [`LineFault`] if the line is no call.
pub fn parse_line(line: &[u8]) -> Result<LoggedCall, LineFault> {
    if line.len() > MAX_LINE {
        return Err(LineFault::TooLong);
    }
    let text = std::str::from_utf8(line).map_err(|_| LineFault::NotText)?;
    let text = text.trim();
    if text.starts_with('{') {
        let object: Map<String, Value> =
            serde_json::from_str(text).map_err(|_| LineFault::NoRequest)?;
        return json(&object);
    }
    let (request, rest) = quoted(text).ok_or(LineFault::NoRequest)?;
    let status = rest.split_whitespace().next();
    request_line(request, status.and_then(status_of))
}

/// Returns the first quoted text, and what follows it. A backslash escapes the next character.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, from) = text.split_once('"')?;
    let mut is_escaped = false;
    for (at, c) in from.char_indices() {
        match c {
            '"' if !is_escaped => return Some((&from[..at], &from[at + 1..])),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    None
}

/// Reads `METHOD TARGET HTTP/VERSION`; the version may be absent, as in HTTP/0.9.
fn request_line(request: &str, status: Option<u16>) -> Result<LoggedCall, LineFault> {
    let mut parts = request.split(' ');
    let (method, target) = (parts.next(), parts.next());
    let is_whole = parts
        .next()
        .is_none_or(|version| version.starts_with("HTTP/"));
    match (method, target) {
        (Some(method), Some(target)) if is_whole && parts.next().is_none() => {
            call(method, target, status)
        }
        _ => Err(LineFault::NotHttp),
    }
}

fn json(object: &Map<String, Value>) -> Result<LoggedCall, LineFault> {
    // Caddy nests the request.
    let inner = object.get("request").and_then(Value::as_object);
    let text = |names: &[&str]| {
        let all = [Some(object), inner].into_iter().flatten();
        let mut found = all.flat_map(|object| names.iter().filter_map(|name| object.get(*name)));
        found.find_map(Value::as_str)
    };
    let status = ["status", "status_code", "response_code", "DownstreamStatus"];
    let status = status.iter().find_map(|name| object.get(*name));
    let status = status.and_then(|status| match status {
        Value::Number(number) => status_of(&number.to_string()),
        Value::String(text) => status_of(text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let method = text(&["method", "request_method", "verb", "RequestMethod"]);
    let target = text(&["request_uri", "uri", "target", "path", "url", "RequestPath"]);
    let (Some(method), Some(target)) = (method, target) else {
        let line = text(&["request", "request_line"]).ok_or(LineFault::NoRequest)?;
        return request_line(line, status);
    };
    let query = text(&["query_string", "query", "args"]).filter(|query| !query.is_empty());
    match query.filter(|_| !target.contains('?')) {
        Some(query) => {
            let query = query.trim_start_matches('?');
            call(method, &format!("{target}?{query}"), status)
        }
        None => call(method, target, status),
    }
}

fn status_of(text: &str) -> Option<u16> {
    text.parse()
        .ok()
        .filter(|status| (100..=599).contains(status))
}

fn call(method: &str, target: &str, status: Option<u16>) -> Result<LoggedCall, LineFault> {
    let is_token = !method.is_empty()
        && method.len() <= 32
        && method
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    let target = path_of(target);
    let is_target = target.starts_with('/')
        && !target.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\');
    if !is_token || !is_target {
        return Err(LineFault::NotHttp);
    }
    Ok(LoggedCall {
        method: method.to_owned(),
        target: target.to_owned(),
        status,
    })
}

/// Returns the target without the scheme and the authority of a URL, and without a fragment.
fn path_of(target: &str) -> &str {
    let target = target.split('#').next().unwrap_or_default();
    let rest = target.split_once("://").map(|(_, rest)| rest);
    match rest.and_then(|rest| rest.find('/').map(|at| &rest[at..])) {
        Some(path) if !target.starts_with('/') => path,
        _ => target,
    }
}

/// Checks the laws for any bytes.
///
/// # Panics
///
/// Panics if a law does not hold.
pub fn check_any_line(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(found) = parse_line(line) else {
            continue;
        };
        let LoggedCall {
            method,
            target,
            status,
        } = &found;
        assert!(
            !method.contains(' ') && target.starts_with('/'),
            "{found:?}"
        );
        assert!(!target.contains([' ', '\t', '\r', '\\']), "{found:?}");
        let status = status.map_or("-".to_owned(), |status| status.to_string());
        let written = format!("h - - [t] \"{method} {target} HTTP/1.1\" {status} 2");
        if !target.contains('"') && written.len() <= MAX_LINE {
            assert_eq!(
                parse_line(written.as_bytes()).as_ref(),
                Ok(&found),
                "written and read"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_of_known_servers_are_read() {
        let cases = [
            // nginx combined, with an escaped quote; Apache common; HTTP/0.9; a proxy request.
            (
                r#"10.0.0.1 - anna [10/Oct/2026:13:55:36 -0700] "GET /items/7?x=1 HTTP/1.1" 200 2326 "-" "curl/8""#,
                ("GET", "/items/7?x=1", Some(200)),
            ),
            (
                r#"h - - [t] "POST /rpc HTTP/2.0" 204 -"#,
                ("POST", "/rpc", Some(204)),
            ),
            (r#"h - - [t] "GET /old" 200 5"#, ("GET", "/old", Some(200))),
            (
                r#"h - - [t] "GET http://a.example/x HTTP/1.1" 200 5"#,
                ("GET", "/x", Some(200)),
            ),
            // JSON: nginx, Caddy, Traefik, a request line.
            (
                r#"{"request_method":"GET","uri":"/a","args":"b=1","status":"404"}"#,
                ("GET", "/a?b=1", Some(404)),
            ),
            (
                r#"{"status":200,"request":{"method":"PUT","uri":"/items/1?a"}}"#,
                ("PUT", "/items/1?a", Some(200)),
            ),
            (
                r#"{"RequestMethod":"GET","RequestPath":"/t","DownstreamStatus":500}"#,
                ("GET", "/t", Some(500)),
            ),
            (r#"{"request":"GET /r HTTP/1.1"}"#, ("GET", "/r", None)),
        ];
        for (line, (method, target, status)) in cases {
            let found = parse_line(line.as_bytes()).unwrap();
            let expected = (method, target, status);
            assert_eq!(
                (&*found.method, &*found.target, found.status),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn other_lines_are_faults() {
        let long = vec![b'a'; MAX_LINE + 1];
        for (line, fault) in [
            (&long[..], LineFault::TooLong),
            (b"\xff", LineFault::NotText),
            (b"no quotes", LineFault::NoRequest),
            (b"{}", LineFault::NoRequest),
            (b"{\"a\"", LineFault::NoRequest),
            (b"h \"\" 400 0", LineFault::NotHttp),
            (b"h \"\\x16\\x03\\x01\" 400 0", LineFault::NotHttp),
            (b"h \"GET / a HTTP/1.1\" 400 0", LineFault::NotHttp),
            (b"h \"OPTIONS * HTTP/1.1\" 200 0", LineFault::NotHttp),
            (b"h \"CONNECT a:443 HTTP/1.1\" 200 0", LineFault::NotHttp),
        ] {
            assert_eq!(
                parse_line(line),
                Err(fault),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
    }
}
