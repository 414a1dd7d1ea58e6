//! The page of `answer = "docs"` and of the admin API: static files that show an OpenAPI document in a browser.
//!
//! The page reads the document from this origin and makes no request elsewhere. Its policy allows no inline script, no
//! inline style and no frame.
//!
//! Used by `compile::local` and `server::admin`.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::header::{HeaderMap, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, StatusCode};

use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{LocalWord, RawAnswer, RawConfig, RawLocalCall};
use dualgauge_model::local_reply::RestLocalReply;
use dualgauge_model::route::Segments;

const HTML: &str = include_str!("docs_page/page.html");
const SCRIPT: &str = include_str!("docs_page/page.js");
const STYLE: &str = include_str!("docs_page/page.css");

/// The content security policy of the page.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The path of the document if no local answer has one.
const DOCUMENT: &str = "/openapi.json";

/// A file of the page.
#[derive(Debug)]
pub struct PageFile {
    /// The path.
    pub path: String,
    /// The media type.
    pub kind: &'static str,
    /// The content.
    pub body: Bytes,
}

/// Returns the page at `path`, with its script and its style below it, for the document at another path.
#[must_use]
pub fn page_files(path: &str, document: &str) -> [PageFile; 3] {
    let base = path.trim_end_matches('/');
    let page = HTML
        .replace("{{files}}", &escaped(base))
        .replace("{{document}}", &escaped(document));
    let file = |path: String, kind, body| PageFile { path, kind, body };
    let (script, style) = (SCRIPT.as_bytes(), STYLE.as_bytes());
    [
        file(path.to_owned(), "text/html; charset=utf-8", page.into()),
        file(
            format!("{base}/page.js"),
            "text/javascript; charset=utf-8",
            Bytes::from_static(script),
        ),
        file(
            format!("{base}/page.css"),
            "text/css; charset=utf-8",
            Bytes::from_static(style),
        ),
    ]
}

/// Returns the page, its script and its style as local replies.
pub(super) fn files(
    call: &Spanned<(Method, String)>,
    raw: &RawConfig,
    problems: &mut Vec<Problem>,
) -> Vec<RestLocalReply> {
    let (method, path) = &call.value;
    if *method != Method::GET {
        let message = format!("`docs` is a page, which browsers get; it cannot answer {method}");
        problems.push(call.problem(message).hint("write `GET` and a path"));
        return Vec::new();
    }
    let base = path.trim_end_matches('/');
    if base.is_empty() {
        let message = "`docs` needs a path of its own, for its script and style";
        problems.push(call.problem(message).hint("write `GET /docs`"));
        return Vec::new();
    }
    let files = page_files(path, &document(raw)).into_iter();
    let reply = |file: PageFile| RestLocalReply {
        method: Method::GET,
        path: Segments::split(&file.path).normal(),
        status: StatusCode::OK,
        headers: headers(file.kind),
        body: file.body,
    };
    files.map(reply).collect()
}

/// Returns the path of the OpenAPI document: that of `answer = "openapi"`, if there is one.
fn document(raw: &RawConfig) -> String {
    let mut paths = raw.locals.iter().filter_map(|local| match &local.call {
        RawLocalCall::Rest(call) if local.answer.value == RawAnswer::Word(LocalWord::OpenApi) => {
            Some(call.value.1.clone())
        }
        RawLocalCall::Rest(_) | RawLocalCall::Rpc(_) | RawLocalCall::Frame(_) => None,
    });
    paths.next().unwrap_or_else(|| DOCUMENT.to_owned())
}

fn headers(kind: &'static str) -> HeaderMap {
    let pairs: [(HeaderName, &'static str); 5] = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    let pairs = pairs.map(|(name, value)| (name, HeaderValue::from_static(value)));
    HeaderMap::from_iter(pairs)
}

/// Escapes a text for an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
}
