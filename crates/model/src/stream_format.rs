//! The formats of streamed responses, and the declaration of a route about them.
//!
//! Used by `config`, `model` and `gateway`.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};

use crate::headers::first_value;
use crate::sse;
use dualgauge_patterns::side::Side;

/// The format of a body that streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamFormat {
    /// Server-sent events (WHATWG HTML Living Standard §9.2).
    #[default]
    EventStream,
    /// One JSON text a line (NDJSON, JSON Lines).
    JsonLines,
}

/// The head of a response that streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamHead {
    /// The format of the body.
    pub format: StreamFormat,
    /// True if the body has a content coding, which hides its events.
    pub is_coded: bool,
}

/// The names under which servers send JSON lines.
const JSON_LINES: [&str; 5] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/json-lines",
];

impl StreamFormat {
    /// Every format.
    pub const ALL: [StreamFormat; 2] = [StreamFormat::EventStream, StreamFormat::JsonLines];

    /// Returns the value in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            StreamFormat::EventStream => "sse",
            StreamFormat::JsonLines => "ndjson",
        }
    }

    /// Returns the content type of a body that the proxy writes.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            StreamFormat::EventStream => sse::EVENT_STREAM,
            StreamFormat::JsonLines => JSON_LINES[0],
        }
    }

    /// Returns the format of a `Content-Type`, ignoring parameters; `None` if it does not stream.
    #[must_use]
    pub fn of_content_type(kind: &str) -> Option<StreamFormat> {
        if sse::is_event_stream(kind) {
            return Some(StreamFormat::EventStream);
        }
        let essence = kind.split(';').next().unwrap_or_default().trim();
        let mut names = JSON_LINES.iter();
        names
            .any(|name| essence.eq_ignore_ascii_case(name))
            .then_some(StreamFormat::JsonLines)
    }

    /// Returns the head of a response that streams; `None` for the head of any other.
    #[must_use]
    pub fn of_head(headers: &HeaderMap) -> Option<StreamHead> {
        let kind = first_value(headers, &CONTENT_TYPE)?.as_bytes();
        if kind == b"application/json" {
            // The most common type needs no further look.
            return None;
        }
        // Parameters may have other characters than ASCII.
        let essence = kind.split(|byte| *byte == b';').next()?;
        let format = StreamFormat::of_content_type(std::str::from_utf8(essence).ok()?)?;
        let codings = headers.get_all(CONTENT_ENCODING).iter();
        let mut codings = codings.flat_map(|field| field.as_bytes().split(|byte| *byte == b','));
        let is_coded = codings.any(|coding| {
            let coding = coding.trim_ascii();
            !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")
        });
        Some(StreamHead { format, is_coded })
    }
}

impl StreamHead {
    /// Returns true if the response is an event stream, with or without a content coding. It may never end.
    #[must_use]
    pub fn is_event_stream(self) -> bool {
        self.format == StreamFormat::EventStream
    }

    /// Returns true if the response is an event stream without a content coding.
    #[must_use]
    pub fn is_plain_event_stream(self) -> bool {
        self.is_event_stream() && !self.is_coded
    }
}

/// The place of a media type in an `Accept` header (RFC 9110 §12.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It is named.
    Named,
    /// A range such as `*/*` includes it, or the client sent no `Accept`.
    Included,
    /// It is not included, or refused by a weight of 0.
    Excluded,
}

impl StreamFormat {
    /// Returns the place of the format in the `Accept` fields of a request.
    #[must_use]
    pub fn acceptance(self, headers: &HeaderMap) -> Acceptance {
        let own = match self {
            StreamFormat::EventStream => &[sse::EVENT_STREAM][..],
            StreamFormat::JsonLines => &JSON_LINES[..],
        };
        acceptance(own, headers)
    }
}

/// Returns true if the client accepts JSON.
#[must_use]
pub fn accepts_json(headers: &HeaderMap) -> bool {
    acceptance(&["application/json"], headers) != Acceptance::Excluded
}

/// Returns the place of a media type with these names in the `Accept` fields of a request.
fn acceptance(own: &[&str], headers: &HeaderMap) -> Acceptance {
    let mut fields = headers.get_all(ACCEPT).iter().peekable();
    if fields.peek().is_none() {
        return Acceptance::Included;
    }
    let ranges = fields.filter_map(|field| field.to_str().ok());
    let ranges = ranges.flat_map(|field| field.split(','));
    let found = ranges.filter_map(|range| in_range(own, range));
    // The most specific range decides (RFC 9110 §12.5.1).
    found
        .max_by_key(|(specificity, _)| *specificity)
        .map_or(Acceptance::Excluded, |(_, acceptance)| acceptance)
}

/// Returns the specificity of a media range that matches one of the names, and what it says.
fn in_range(own: &[&str], range: &str) -> Option<(u8, Acceptance)> {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let is_named = own.iter().any(|own| name.eq_ignore_ascii_case(own));
    let mut kinds = own.iter().filter_map(|own| own.split('/').next());
    let any = name.split_once('/').filter(|(_, subtype)| *subtype == "*");
    let specificity = match any {
        _ if is_named => 2,
        Some((of, _)) if kinds.any(|kind| of.eq_ignore_ascii_case(kind)) => 1,
        Some(("*", _)) => 0,
        Some(_) | None => return None,
    };
    let refused = |part: &str| {
        let weight = part.strip_prefix("q=").or(part.strip_prefix("Q="));
        weight.is_some_and(|weight| weight.parse() == Ok(0.0_f32))
    };
    let acceptance = match (parts.any(refused), is_named) {
        (true, _) => Acceptance::Excluded,
        (false, true) => Acceptance::Named,
        (false, false) => Acceptance::Included,
    };
    Some((specificity, acceptance))
}

/// The formats of one response: as the upstream sends it, and as the client gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFormats {
    /// The format of the upstream's body.
    pub upstream: StreamFormat,
    /// The format of the client's body.
    pub client: StreamFormat,
}

/// The declaration of a route about responses that stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RouteStream {
    /// Nothing is declared: an event stream is translated, but none is asked for.
    #[default]
    Undeclared,
    /// Responses may stream, in this format of each side.
    Formats {
        /// The format of the REST side.
        rest: StreamFormat,
        /// The format of the RPC side.
        rpc: StreamFormat,
    },
    /// A response that streams is refused.
    Never,
}

impl RouteStream {
    /// Returns the format in which a side streams.
    #[must_use]
    pub const fn format(self, side: Side) -> StreamFormat {
        match (self, side) {
            (RouteStream::Formats { rest, .. }, Side::Rest) => rest,
            (RouteStream::Formats { rpc, .. }, Side::Rpc) => rpc,
            (RouteStream::Undeclared | RouteStream::Never, _) => StreamFormat::EventStream,
        }
    }

    /// Returns the formats of an upstream's response in a format, if it counts as a stream. An event stream always does;
    /// JSON lines do if the route declares them.
    #[must_use]
    pub fn formats(self, upstream: StreamFormat, client: Side) -> Option<StreamFormats> {
        let is_expected = match upstream {
            StreamFormat::EventStream => true,
            StreamFormat::JsonLines => self.format(client.other()) == StreamFormat::JsonLines,
        };
        is_expected.then_some(StreamFormats {
            upstream,
            client: self.format(client),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_names_the_format() {
        let of = StreamFormat::of_content_type;
        for format in StreamFormat::ALL {
            assert_eq!(of(format.content_type()), Some(format));
        }
        assert_eq!(
            of("Application/JSONL; charset=utf-8"),
            Some(StreamFormat::JsonLines)
        );
        for kind in [
            "application/json",
            "",
            "text/event-stream-like",
            "text/plain",
        ] {
            assert_eq!(of(kind), None, "{kind}");
        }
    }

    #[test]
    fn the_head_of_a_response_says_whether_it_streams_and_is_encoded() {
        let of = |kind: &'static str, codings: &[&'static str]| {
            let value = http::HeaderValue::from_static;
            let mut headers = HeaderMap::new();
            headers.insert(
                CONTENT_TYPE,
                http::HeaderValue::from_bytes(kind.as_bytes()).unwrap(),
            );
            for coding in codings {
                headers.append(CONTENT_ENCODING, value(coding));
            }
            StreamFormat::of_head(&headers).map(|head| (head.format, head.is_coded))
        };
        let (events, lines) = (StreamFormat::EventStream, StreamFormat::JsonLines);
        assert_eq!(
            of("Text/Event-Stream; charset=utf-8", &[]),
            Some((events, false))
        );
        assert_eq!(of("text/event-stream; name=é", &[]), Some((events, false)));
        assert_eq!(
            of("text/event-stream", &["Identity", ""]),
            Some((events, false))
        );
        assert_eq!(of("text/event-stream", &["gzip"]), Some((events, true)));
        assert_eq!(
            of("text/event-stream", &["identity, gzip"]),
            Some((events, true))
        );
        assert_eq!(
            of("text/event-stream", &["identity", "br"]),
            Some((events, true))
        );
        assert_eq!(of("application/jsonl", &["gzip"]), Some((lines, true)));
        assert_eq!(of("application/json", &["gzip"]), None);
        assert_eq!(StreamFormat::of_head(&HeaderMap::new()), None);
    }

    #[test]
    fn the_most_specific_range_of_accept_decides() {
        let of = |fields: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(ACCEPT, http::HeaderValue::from_static(field));
            }
            StreamFormat::EventStream.acceptance(&headers)
        };
        assert_eq!(of(&[]), Acceptance::Included);
        assert_eq!(
            of(&["application/json", "Text/Event-Stream;q=0.5"]),
            Acceptance::Named
        );
        assert_eq!(of(&["application/json, text/*"]), Acceptance::Included);
        assert_eq!(of(&["application/json, */*;q=0.1"]), Acceptance::Included);
        assert_eq!(of(&["*/*, text/event-stream; q=0"]), Acceptance::Excluded);
        assert_eq!(of(&["*/*, text/*;q=0.0"]), Acceptance::Excluded);
        assert_eq!(of(&["application/json"]), Acceptance::Excluded);
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, http::HeaderValue::from_static("application/jsonl"));
        let lines = StreamFormat::JsonLines.acceptance(&headers);
        assert_eq!(lines, Acceptance::Named);
    }

    #[test]
    fn json_lines_stream_only_where_the_route_says_so() {
        let (lines, events) = (StreamFormat::JsonLines, StreamFormat::EventStream);
        let undeclared = RouteStream::Undeclared;
        assert_eq!(undeclared.formats(lines, Side::Rpc), None);
        assert!(undeclared.formats(events, Side::Rpc).is_some());
        let declared = RouteStream::Formats {
            rest: StreamFormat::JsonLines,
            rpc: StreamFormat::EventStream,
        };
        let both = |upstream, client| Some(StreamFormats { upstream, client });
        assert_eq!(
            declared.formats(lines, Side::Rpc),
            both(StreamFormat::JsonLines, StreamFormat::EventStream)
        );
        assert_eq!(
            declared.formats(events, Side::Rest),
            both(StreamFormat::EventStream, StreamFormat::JsonLines)
        );
        assert_eq!(declared.formats(lines, Side::Rest), None);
    }
}
