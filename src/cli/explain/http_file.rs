//! HTTP files as used by editors: a request line, headers, a blank line, a body; `###` between requests.
//!
//! Parsing is lenient, since people write these files: the method may be missing (GET), and the version too. A target
//! may be a whole URL, and a query may continue on the next lines. Errors name the line.

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};

use super::input_error::InputError;
use dualgauge_model::outcome::RestReply;
use dualgauge_transport::wire::encode_raw;

/// A request to explain.
#[derive(Debug)]
pub(super) struct HttpFileRequest {
    /// Its name in a `###` line.
    pub(super) name: Option<String>,
    pub(super) method: Method,
    /// The target in origin form.
    pub(super) target: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// A line and its number, from 1.
type HttpFileLine<'a> = (usize, &'a str);

/// Parses all requests of a file.
pub(super) fn requests(text: &str) -> Result<Vec<HttpFileRequest>, InputError> {
    let mut requests = Vec::new();
    let mut name = None;
    let mut lines: Vec<HttpFileLine<'_>> = Vec::new();
    for line in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        match line.1.strip_prefix("###") {
            Some(title) => {
                requests.extend(request(name.take(), &lines)?);
                lines.clear();
                name = Some(title.trim().to_owned()).filter(|title| !title.is_empty());
            }
            None => lines.push(line),
        }
    }
    requests.extend(request(name, &lines)?);
    if requests.is_empty() {
        return Err(InputError::EmptyFile);
    }
    Ok(requests)
}

/// Parses one request; returns `None` if there are only comments and blank lines.
fn request(
    name: Option<String>,
    lines: &[HttpFileLine<'_>],
) -> Result<Option<HttpFileRequest>, InputError> {
    let is_remark =
        |line: &str| line.trim().is_empty() || line.starts_with('#') || line.starts_with("//");
    let mut lines = lines
        .iter()
        .copied()
        .skip_while(|(_, line)| is_remark(line));
    let Some((number, first)) = lines.next() else {
        return Ok(None);
    };
    if first.starts_with('@') {
        return Err(InputError::line(
            number,
            "variables are not known here; write their values",
        ));
    }
    let mut rest = lines.peekable();
    let mut line = first.trim().to_owned();
    while let Some((_, more)) = rest.next_if(|(_, line)| continues(line)) {
        line.push_str(more.trim());
    }
    let (method, url) = request_line(&line).map_err(|what| InputError::line(number, what))?;
    let (headers, body) = message(rest)?;
    let (target, authority) = target(&url).map_err(|what| InputError::line(number, what))?;
    let mut request = HttpFileRequest {
        name,
        method,
        target,
        headers,
        body,
    };
    request.add_host(authority);
    Ok(Some(request))
}

/// Returns whether a line continues the query of the target.
fn continues(line: &str) -> bool {
    line.starts_with([' ', '\t']) && line.trim_start().starts_with(['?', '&'])
}

fn request_line(line: &str) -> Result<(Method, String), String> {
    let line = match line.rsplit_once(' ') {
        Some((before, version)) if version.starts_with("HTTP/") => before.trim_end(),
        Some(_) | None => line,
    };
    match line.split_once(' ') {
        None => Ok((Method::GET, line.to_owned())),
        Some((method, url)) => {
            let known = Method::from_bytes(method.as_bytes());
            let known = known.map_err(|_| format!("`{method}` is not an HTTP method"))?;
            Ok((known, url.trim().to_owned()))
        }
    }
}

/// Parses a URL or a path into the origin form, and the host of the URL.
pub(super) fn target(url: &str) -> Result<(Uri, Option<String>), String> {
    if url.contains("{{") {
        return Err("variables are not known here; write their values".to_owned());
    }
    let url = url.split_once('#').map_or(url, |(url, _)| url);
    let absolute = match url.split_once("://") {
        Some(_) => url.to_owned(),
        None if url.starts_with('/') => url.to_owned(),
        None => format!("http://{url}"),
    };
    let wrong =
        |_| format!("`{url}` is neither a path nor a URL; percent-encode what has no place in one");
    let uri: Uri = encode_raw(&absolute).parse().map_err(wrong)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let path = path.parse().map_err(wrong)?;
    Ok((path, uri.authority().map(|host| host.as_str().to_owned())))
}

impl HttpFileRequest {
    /// Adds the `Host` of the URL, unless the request has one.
    pub(super) fn add_host(&mut self, authority: Option<String>) {
        if self.headers.contains_key(HOST) {
            return;
        }
        let host = authority.unwrap_or_else(|| "localhost".to_owned());
        if let Ok(host) = HeaderValue::try_from(host) {
            self.headers.insert(HOST, host);
        }
    }
}

/// Parses headers up to a blank line; returns the body after it.
fn message<'a>(
    mut lines: impl Iterator<Item = HttpFileLine<'a>>,
) -> Result<(HeaderMap, Bytes), InputError> {
    let mut headers = HeaderMap::new();
    for (number, line) in lines.by_ref() {
        if line.trim().is_empty() {
            break;
        }
        if line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        let (name, value) = header(line).map_err(|what| InputError::line(number, what))?;
        headers.append(name, value);
    }
    let body: Vec<&str> = lines.map(|(_, line)| line).collect();
    let body = body.join("\n");
    Ok((headers, Bytes::from(body.trim_end().to_owned())))
}

/// Parses `Name: value`.
pub(super) fn header(line: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || format!("`{line}` is not a header; write `Name: value`");
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong())?;
    let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong())?;
    Ok((name, value))
}

/// Parses a reply: with its head (`HTTP/1.1 404 Not Found`), or the body alone.
pub(super) fn reply(text: &str, status: Option<StatusCode>) -> Result<RestReply, InputError> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    if !text.starts_with("HTTP/") {
        let body = Bytes::from(text.trim_end().to_owned());
        return Ok(RestReply {
            status: status.unwrap_or(StatusCode::OK).as_u16(),
            headers: guessed(&body),
            body,
        });
    }
    let first = lines.next().map_or("", |(_, line)| line);
    let said = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let said = said.ok_or_else(|| InputError::line(1, format!("`{first}` has no status")))?;
    let (headers, body) = message(lines)?;
    let status = status.map_or(said, |status| status.as_u16());
    Ok(RestReply {
        status,
        headers,
        body,
    })
}

/// Returns headers for a body without a head: JSON if it parses, else text.
fn guessed(body: &Bytes) -> HeaderMap {
    let json = serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
    let kind = if json {
        "application/json"
    } else {
        "text/plain; charset=utf-8"
    };
    let mut headers = HeaderMap::new();
    if !body.is_empty() {
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_as_editors_have_it_is_read_request_by_request() {
        let text = "# a remark\n\n### first\nPOST http://api.example:8080/items?a=1 HTTP/1.1\nContent-Type: application/json\n// more\nX-A: 1\nx-a: 2\n\n{\"n\":\n 1}\n\n###\nGET /items\n    ?page=2\n    &limit=1\n\n###\n\n/items\n###\n";
        let found = requests(text).unwrap();
        let told: Vec<String> = found
            .iter()
            .map(|request| format!("{:?} {} {}", request.name, request.method, request.target))
            .collect();
        assert_eq!(
            told,
            [
                r#"Some("first") POST /items?a=1"#,
                "None GET /items?page=2&limit=1",
                "None GET /items"
            ]
        );
        assert_eq!(found[0].body, "{\"n\":\n 1}");
        assert_eq!(found[0].headers.get_all("x-a").iter().count(), 2);
        assert_eq!(found[0].headers["host"], "api.example:8080");
        assert_eq!(found[1].headers["host"], "localhost");
        assert!(found[1].body.is_empty());
    }

    #[test]
    fn what_is_no_request_is_named_with_its_line() {
        for (text, words) in [
            (
                "",
                "the HTTP file has no request; write one, such as `GET /items/7`",
            ),
            (
                "###\n# x\n",
                "the HTTP file has no request; write one, such as `GET /items/7`",
            ),
            (
                "GET /a\nno header\n",
                "line 2: `no header` is not a header; write `Name: value`",
            ),
            ("\nB(D /a\n", "line 2: `B(D` is not an HTTP method"),
            (
                "@host = x\nGET /a\n",
                "line 1: variables are not known here; write their values",
            ),
            (
                "GET {{host}}/a\n",
                "line 1: variables are not known here; write their values",
            ),
            (
                "GET /a b HTTP/1.1\n",
                "line 1: `/a b` is neither a path nor a URL; percent-encode what has no place in one",
            ),
        ] {
            assert_eq!(requests(text).unwrap_err().to_string(), words, "{text:?}");
        }
    }

    #[test]
    fn a_reply_is_a_body_or_a_whole_answer() {
        let plain = reply("{\"a\":1}\n", None).unwrap();
        assert_eq!(
            (plain.status, plain.content_type()),
            (200, Some("application/json"))
        );
        let failed = reply("gone", StatusCode::from_u16(410).ok()).unwrap();
        assert_eq!(
            (failed.status, failed.content_type()),
            (410, Some("text/plain; charset=utf-8"))
        );
        let whole = reply(
            "HTTP/1.1 404 Not Found\r\nContent-Type: a/b\r\n\r\nx\r\n",
            None,
        )
        .unwrap();
        assert_eq!((whole.status, whole.content_type()), (404, Some("a/b")));
        assert_eq!(whole.body, "x");
        assert!(reply("HTTP/1.1\n\n", None).is_err());
    }
}
