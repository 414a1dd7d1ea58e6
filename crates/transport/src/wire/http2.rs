//! HTTP/2 requests: the framing is unambiguous, but the head is converted to the form that an HTTP/1.1 server reads, or
//! rejected with the violations of the inspector.

use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderMap, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Uri, request};

use super::head::{decimal, is_host, path_and_query};
use super::{HeadLimits, Violation};

/// Converts the head of a request to the form of HTTP/1.1: the authority as `Host`, the target in origin form, one
/// `Cookie` (RFC 9113 §8.2.3, §8.3.1). Returns a violation that must not pass.
#[must_use]
pub fn settle(head: &mut request::Parts, limits: HeadLimits) -> Option<Violation> {
    let found = fault(head, limits);
    if found.is_none() {
        if let Some(host) = authority(&head.uri) {
            head.headers.insert(HOST, host);
        }
        join_cookies(&mut head.headers);
        // The client sends its body without waiting: no `100 Continue` reaches it.
        head.headers.remove(EXPECT);
    }
    let origin = head.uri.path_and_query().cloned();
    head.uri = Uri::from(origin.unwrap_or(PathAndQuery::from_static("/")));
    found
}

fn authority(uri: &Uri) -> Option<HeaderValue> {
    let authority = uri.authority()?;
    HeaderValue::try_from(authority.as_str()).ok()
}

fn fault(head: &request::Parts, limits: HeadLimits) -> Option<Violation> {
    // With or without `:protocol` (RFC 8441): tunnels are not supported.
    if head.method == Method::CONNECT {
        return Some(Violation::Connect);
    }
    if list_size(head) > limits.head {
        return Some(Violation::HeadTooLarge);
    }
    let target = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if target.len() > limits.target {
        return Some(Violation::TargetTooLong);
    }
    let asterisk = target == "*" && head.method == Method::OPTIONS;
    if !asterisk {
        if !target.starts_with('/') {
            return Some(Violation::Target);
        }
        if let Err(violation) = path_and_query(target.as_bytes()) {
            return Some(violation);
        }
    }
    if has_padded_value(&head.headers) {
        return Some(Violation::FieldValue);
    }
    host_fault(head).or_else(|| length_fault(&head.headers))
}

/// Returns whether a value begins or ends with white space, which makes an HTTP/2 message malformed (RFC 9113 §8.2.1).
/// HTTP/1.1 readers strip it, but HTTP/2 readers do not.
#[must_use]
pub fn has_padded_value(headers: &HeaderMap) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let mut values = headers.values().map(HeaderValue::as_bytes);
    values.any(|value| is_blank(value.first()) || is_blank(value.last()))
}

/// Returns the size of a header list (RFC 9113 §6.5.2): names and values without compression, and 32 bytes for each
/// field.
fn list_size(head: &request::Parts) -> usize {
    let authority = head.uri.authority().map_or("", |own| own.as_str());
    let target = head.uri.path_and_query().map_or("", PathAndQuery::as_str);
    let scheme = head.uri.scheme_str().unwrap_or_default();
    let pseudo = [
        (":method", head.method.as_str().len()),
        (":scheme", scheme.len()),
        (":authority", authority.len()),
        (":path", target.len()),
    ];
    let fields = head.headers.iter();
    let fields = fields.map(|(name, value)| (name.as_str(), value.len()));
    let sizes = pseudo.into_iter().chain(fields);
    sizes.map(|(name, value)| name.len() + value + 32).sum()
}

/// Checks RFC 9113 §8.3.1: `:authority`, or `Host` without it; they must not differ.
fn host_fault(head: &request::Parts) -> Option<Violation> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    if more.is_some() {
        return Some(Violation::HostRepeated);
    }
    let asked = head.uri.authority().map(|authority| authority.as_str());
    match (asked, host) {
        (None, None) => Some(Violation::NoHost),
        (Some(asked), _) if !is_host(asked.as_bytes()) || asked.is_empty() => Some(Violation::Host),
        (_, Some(host)) if !is_host(host.as_bytes()) || host.is_empty() => Some(Violation::Host),
        (Some(asked), Some(host)) if !same(asked.as_bytes(), host.as_bytes()) => {
            Some(Violation::AuthorityDiffers)
        }
        (Some(_), _) | (None, Some(_)) => None,
    }
}

/// Compares ignoring case, and the default port of `https` (RFC 9110 §4.2.3).
fn same(one: &[u8], other: &[u8]) -> bool {
    let bare = |host: &[u8]| {
        host.strip_suffix(b":443")
            .unwrap_or(host)
            .to_ascii_lowercase()
    };
    bare(one) == bare(other)
}

fn length_fault(headers: &HeaderMap) -> Option<Violation> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let first = lengths.next()?;
    if lengths.next().is_some() {
        return Some(Violation::ContentLengthRepeated);
    }
    decimal(first.as_bytes())
        .is_none()
        .then_some(Violation::ContentLength)
}

/// Joins the cookies: a client may split them, but HTTP/1.1 has one field for all.
fn join_cookies(headers: &mut HeaderMap) {
    let mut pieces = headers.get_all(COOKIE).iter();
    let (Some(first), Some(second)) = (pieces.next(), pieces.next()) else {
        return;
    };
    let mut joined = first.as_bytes().to_vec();
    for piece in std::iter::once(second).chain(pieces) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(piece.as_bytes());
    }
    if let Ok(mut joined) = HeaderValue::from_bytes(&joined) {
        joined.set_sensitive(true);
        headers.insert(COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const LIMITS: HeadLimits = HeadLimits {
        head: 1000,
        target: 20,
    };

    fn settled(
        method: &str,
        uri: &str,
        fields: &[(&str, &str)],
    ) -> Result<request::Parts, Violation> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        settle(&mut head, LIMITS).map_or(Ok(head), Err)
    }

    #[test]
    fn a_head_becomes_one_of_http_1() {
        let fields = [
            ("cookie", "a=1"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
            ("expect", "100-continue"),
        ];
        let head = settled("GET", "https://A.example:443/a?b=c", &fields).unwrap();
        assert_eq!(head.uri, "/a?b=c");
        assert_eq!(head.headers[HOST], "A.example:443");
        let cookies: Vec<_> = head.headers.get_all(COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2; c=3"]);
        assert!(!head.headers.contains_key(EXPECT));
        let head = settled("GET", "/a", &[("host", "h")]).unwrap();
        assert_eq!(
            (head.uri.path(), &head.headers[HOST]),
            ("/a", &HeaderValue::from_static("h"))
        );
        settled("GET", "https://h/", &[("host", "H:443")]).unwrap();
    }

    #[test]
    fn a_header_list_has_its_limit_with_all_that_a_field_costs() {
        let of_size = |size: usize| {
            // `:method`, `:scheme`, `:authority` and `:path` with their values, and the name of the field.
            let rest = (7 + 3) + (7 + 5) + (10 + 1) + (5 + 1) + 1 + 5 * 32;
            let long = "v".repeat(size - rest);
            settled("GET", "https://h/", &[("a", &*long)]).map(|_| ())
        };
        assert_eq!(of_size(LIMITS.head), Ok(()));
        assert_eq!(of_size(LIMITS.head + 1), Err(Violation::HeadTooLarge));
    }

    #[test]
    fn what_two_servers_could_read_in_two_ways_is_refused() {
        for (method, uri, fields, violation) in [
            ("CONNECT", "h:443", &[][..], Violation::Connect),
            (
                "GET",
                "https://h/123456789012345678901",
                &[],
                Violation::TargetTooLong,
            ),
            ("GET", "*", &[("host", "h")], Violation::Target),
            ("GET", "/", &[], Violation::NoHost),
            (
                "GET",
                "https://h/",
                &[("host", "x")],
                Violation::AuthorityDiffers,
            ),
            (
                "GET",
                "/",
                &[("host", "x"), ("host", "x")],
                Violation::HostRepeated,
            ),
            ("GET", "/", &[("host", "x y")], Violation::Host),
            ("GET", "https://u@h/", &[], Violation::Host),
            (
                "PUT",
                "https://h/",
                &[("content-length", "1"), ("content-length", "1")],
                Violation::ContentLengthRepeated,
            ),
            ("GET", "https://h/", &[("a", " b")], Violation::FieldValue),
            ("GET", "https://h/", &[("a", "b\t")], Violation::FieldValue),
            (
                "PUT",
                "https://h/",
                &[("content-length", "+1")],
                Violation::ContentLength,
            ),
        ] {
            assert_eq!(
                settled(method, uri, fields).unwrap_err(),
                violation,
                "{method} {uri}"
            );
        }
    }
}
