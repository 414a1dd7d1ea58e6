//! The violations that the inspector rejects, with their client texts. Used by `wire`.

use std::fmt;

/// A request framing that two parsers could read differently, or that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Violation {
    /// A line that ends in LF without CR (RFC 9112 §2.2 lets a recipient accept it; many do not).
    BareLf,
    /// A CR that no LF follows (RFC 9112 §2.2: invalid, or to be replaced by a space).
    BareCr,
    /// More empty lines before a request line than tolerated (RFC 9112 §2.2: at least one).
    EmptyLines,
    /// The HTTP/2 connection preface (RFC 9113 §3.4).
    Http2Preface,
    /// A request line that is not `method SP target SP version` (RFC 9112 §3).
    RequestLine,
    /// A method that is not a token (RFC 9110 §9.1).
    Method,
    /// `CONNECT`, which a gateway does not tunnel (RFC 9110 §9.3.6).
    Connect,
    /// A protocol version other than 1.0 and 1.1 (RFC 9112 §2.3).
    Version,
    /// A target in none of the four forms, or with bytes that a URI does not have (RFC 9112 §3.2).
    Target,
    /// A fragment, which is never sent (RFC 9112 §3.2: targets have path and query only).
    Fragment,
    /// A target beyond the limit (RFC 9112 §3).
    TargetTooLong,
    /// An absolute target of another host than `Host` (RFC 9112 §3.2.2).
    AuthorityDiffers,
    /// A head beyond the limit (RFC 9112 §2.3, RFC 6585 §5).
    HeadTooLarge,
    /// More header lines than the parser accepts (RFC 6585 §5).
    TooManyFields,
    /// A head that ends before its end (RFC 9112 §8).
    HeadCut,
    /// A head that takes longer than the limit (RFC 9110 §15.5.9).
    HeadTooSlow,
    /// A header line without a colon (RFC 9112 §5).
    NoColon,
    /// A header name that is empty or not a token (RFC 9110 §5.1).
    FieldName,
    /// White space between a header name and its colon (RFC 9112 §5.1: to be refused with 400).
    SpaceBeforeColon,
    /// A header line that continues the one before (RFC 9112 §5.2: obsolete).
    ObsFold,
    /// A control byte in a header value (RFC 9110 §5.5), or over HTTP/2 white space around it (RFC 9113 §8.2.1).
    FieldValue,
    /// HTTP/1.1 without `Host` (RFC 9112 §3.2).
    NoHost,
    /// More than one `Host` (RFC 9112 §3.2).
    HostRepeated,
    /// A `Host` that is not `uri-host [":" port]` (RFC 9110 §7.2).
    Host,
    /// A `Content-Length` that is not a decimal number, or is beyond 2^63 - 1 (RFC 9110 §8.6).
    ContentLength,
    /// `Content-Length` more than once, even if equal (RFC 9110 §8.6 lets a recipient refuse).
    ContentLengthRepeated,
    /// Both `Content-Length` and `Transfer-Encoding` (RFC 9112 §6.1).
    TwoFramings,
    /// `Transfer-Encoding` other than one `chunked` (RFC 9112 §6.1, §6.3).
    TransferEncoding,
    /// `Transfer-Encoding` more than once (RFC 9112 §6.1: chunked is applied once).
    TransferEncodingRepeated,
    /// `Transfer-Encoding` in an HTTP/1.0 message (RFC 9112 §6.1: framing is faulty).
    TransferEncodingInHttp10,
    /// A chunk size that is not 1 to 16 hexadecimal digits (RFC 9112 §7.1).
    ChunkSize,
    /// A chunk extension outside the grammar (RFC 9112 §7.1.1).
    ChunkExtension,
    /// A chunk-size line, or all extensions of one body, beyond the limit (RFC 9112 §7.1.1).
    ChunkExtensionTooLong,
    /// Chunk data that CRLF does not follow (RFC 9112 §7.1).
    ChunkEnd,
    /// A trailer that would change framing or routing (RFC 9110 §6.5.1).
    TrailerForbidden,
    /// A trailer section beyond the limit (RFC 9112 §7.1.2).
    TrailersTooLarge,
}

impl Violation {
    /// Every violation, for tables with one row for each.
    pub const ALL: [Violation; 36] = [
        Violation::BareLf,
        Violation::BareCr,
        Violation::EmptyLines,
        Violation::Http2Preface,
        Violation::RequestLine,
        Violation::Method,
        Violation::Connect,
        Violation::Version,
        Violation::Target,
        Violation::Fragment,
        Violation::TargetTooLong,
        Violation::AuthorityDiffers,
        Violation::HeadTooLarge,
        Violation::TooManyFields,
        Violation::HeadCut,
        Violation::HeadTooSlow,
        Violation::NoColon,
        Violation::FieldName,
        Violation::SpaceBeforeColon,
        Violation::ObsFold,
        Violation::FieldValue,
        Violation::NoHost,
        Violation::HostRepeated,
        Violation::Host,
        Violation::ContentLength,
        Violation::ContentLengthRepeated,
        Violation::TwoFramings,
        Violation::TransferEncoding,
        Violation::TransferEncodingRepeated,
        Violation::TransferEncodingInHttp10,
        Violation::ChunkSize,
        Violation::ChunkExtension,
        Violation::ChunkExtensionTooLong,
        Violation::ChunkEnd,
        Violation::TrailerForbidden,
        Violation::TrailersTooLarge,
    ];

    /// Returns the text for the client: what was found and what is allowed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BareLf => "a line ends in LF alone; every line must end in CR LF",
            Self::BareCr => "a CR without LF inside a line; CR may only stand before LF",
            Self::EmptyLines => "empty lines before the request line; at most two are allowed",
            Self::Http2Preface => "the HTTP/2 preface; `HTTP/1.1` and `HTTP/1.0` are allowed",
            Self::RequestLine => {
                "a malformed request line; it must be a method, one space, a target, one space, `HTTP/1.1`"
            }
            Self::Method => "a method with forbidden characters; it must be a token",
            Self::Connect => "the method CONNECT; tunnels are not offered",
            Self::Version => "an unknown version; `HTTP/1.1` and `HTTP/1.0` are allowed",
            Self::Target => {
                "a malformed request target; it must be a path with an optional query, percent-encoded, or an `http` URL"
            }
            Self::Fragment => "a `#` in the request target; a fragment must not be sent",
            Self::TargetTooLong => "the request target is longer than the limit",
            Self::AuthorityDiffers => {
                "the host in the request target differs from `Host`; both must be the same"
            }
            Self::HeadTooLarge => "the request head is larger than the limit",
            Self::TooManyFields => "too many header lines; at most 99 are allowed",
            Self::HeadCut => "the connection ended within the request head",
            Self::HeadTooSlow => "the request head took longer than the limit",
            Self::NoColon => "a header line without a colon; it must be `name: value`",
            Self::FieldName => "a malformed header name; it must be a token",
            Self::SpaceBeforeColon => "white space before the colon of a header; none is allowed",
            Self::ObsFold => "a header line that begins with white space; none may",
            Self::FieldValue => {
                "a header value with a control character, or over HTTP/2 with white space around it; neither is allowed"
            }
            Self::NoHost => "no `Host`; an HTTP/1.1 request must have exactly one",
            Self::HostRepeated => "more than one `Host`; exactly one is allowed",
            Self::Host => "a malformed `Host`; it must be a host name with an optional port",
            Self::ContentLength => "a malformed `Content-Length`; it must be one decimal number",
            Self::ContentLengthRepeated => "more than one `Content-Length`; one is allowed",
            Self::TwoFramings => {
                "both `Content-Length` and `Transfer-Encoding`; only one of them is allowed"
            }
            Self::TransferEncoding => "an unknown `Transfer-Encoding`; one `chunked` is allowed",
            Self::TransferEncodingRepeated => "two `Transfer-Encoding`; one `chunked` is allowed",
            Self::TransferEncodingInHttp10 => "`Transfer-Encoding` in HTTP/1.0; it needs HTTP/1.1",
            Self::ChunkSize => "a malformed chunk size; it must be 1 to 16 hexadecimal digits",
            Self::ChunkExtension => {
                "a malformed chunk extension; it must be `;name`, `;name=token` or `;name=\"text\"`"
            }
            Self::ChunkExtensionTooLong => "chunk extensions longer than the limit",
            Self::ChunkEnd => "a chunk longer than its size; CR LF must follow its data",
            Self::TrailerForbidden => {
                "a trailer that frames or routes the message; `Content-Length`, `Transfer-Encoding` and `Host` belong in the head"
            }
            Self::TrailersTooLarge => "the trailer section is larger than the limit",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Violation {}
