//! The headers of a pattern: which headers it may name, and how it reads and writes them. Used throughout `model`.

use http::header::{CONTENT_LOCATION, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::captured::OTHERS;
use dualgauge_patterns::pattern::{
    HoleFacts, HolePosition, HoleRef, MatchError, PatternError, PatternReader, PatternWriter, Slot,
    SourceTree, TextPatterns, as_key,
};
use dualgauge_patterns::side::Side;

/// One header of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderItem<H = Slot> {
    /// The name.
    pub name: HeaderName,
    /// The pattern of the value.
    pub words: TextPatterns<H>,
}

impl<H> HeaderItem<H> {
    /// Returns true when the value of the header is a URL (RFC 9110 §10.2.2, §8.7).
    #[must_use]
    pub fn is_url(&self) -> bool {
        self.name == LOCATION || self.name == CONTENT_LOCATION
    }

    /// Returns a text as the value of this header. Fails when a message cannot carry it unchanged.
    ///
    /// # Errors
    /// Returns the fault of the text.
    pub fn value(&self, text: &str) -> Result<HeaderValue, &'static str> {
        if self.is_url() && !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NO_VALUE);
        }
        header_value(text)
    }
}

const NO_VALUE: &str = "its value is not allowed in a header (RFC 9110 §5.5)";

/// Returns a text as a header value. Fails when a message cannot carry it unchanged.
pub(super) fn header_value(text: &str) -> Result<HeaderValue, &'static str> {
    let is_trimmed = text.trim_matches([' ', '\t']) == text;
    let value = HeaderValue::from_str(text).ok();
    value.filter(|_| is_trimmed).ok_or(NO_VALUE)
}

/// Returns the location of the header with the page whose offset is the hole with this name.
pub(crate) fn header_of_page(items: &[HeaderItem], name: &str) -> Option<String> {
    let item = items.iter().find(|item| item.words.has_page_of(name))?;
    Some(format!("header `{}`", item.name))
}

/// Reads `headers = { name = "{hole}" }`.
pub(crate) fn parse_headers(
    headers: &[(String, SourceTree)],
    errors: &mut Vec<PatternError>,
) -> Vec<HeaderItem<HoleRef>> {
    let items = headers.iter().filter_map(|(name, tree)| {
        let item = header_name(name).and_then(|name| {
            let words = words(tree)?;
            Ok(HeaderItem { name, words })
        });
        let item = item.map_err(|error| error.under(&format!("headers.{}", as_key(name))));
        item.map_err(|error| errors.push(error)).ok()
    });
    items.collect()
}

/// Headers of one connection, of the framing and of what the proxy writes itself.
pub(crate) const OF_THE_CONNECTION: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "forwarded",
];

/// Returns true for headers of one connection, of the framing and of what the proxy writes itself.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    OF_THE_CONNECTION.contains(&name) || name.starts_with("proxy-")
}

fn header_name(name: &str) -> Result<HeaderName, PatternError> {
    if name.ends_with(OTHERS) {
        return Err(PatternError::new(
            "headers are captured by a prefix only in the `headers` of a route, not in those of a response",
        ));
    }
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Err(PatternError::new(format!(
            "header names are written in lower case: `{}`",
            name.to_ascii_lowercase()
        )));
    }
    let parsed = HeaderName::from_bytes(name.as_bytes());
    let parsed =
        parsed.map_err(|_| PatternError::new(format!("`{name}` is not an HTTP header name")))?;
    if is_reserved(name) {
        return Err(PatternError::new(format!(
            "`{name}` belongs to a single connection or is written by the proxy, so no pattern may name it"
        )));
    }
    Ok(parsed)
}

/// Parses the pattern of a text; numbers and booleans count as texts here.
pub(super) fn words(tree: &SourceTree) -> Result<TextPatterns<HoleRef>, PatternError> {
    match tree {
        SourceTree::Text(text) => TextPatterns::parse(text),
        SourceTree::Literal(json) => Ok(TextPatterns::Literal(
            String::from_utf8_lossy(json.as_bytes()).into_owned(),
        )),
        SourceTree::Table(_) | SourceTree::List(_) => {
            Err(PatternError::new("it must be text, not a table or a list"))
        }
    }
}

/// Resolves the slots of headers.
pub(crate) fn resolve_headers(
    side: Side,
    headers: &[HeaderItem<HoleRef>],
    facts: &HoleFacts,
) -> Result<Vec<HeaderItem>, PatternError> {
    let items = headers.iter().map(|item| {
        let within = |error: PatternError| error.under(&format!("headers.{}", item.name));
        let words = facts.words(side, &item.words, HolePosition::Words);
        let mut words = words.map_err(within)?;
        if item.is_url()
            && let TextPatterns::Mixed(text) = &mut words
        {
            text.percent_encoded();
        }
        let fits = |text: &str| Ok(item.value(text).map(drop)?);
        facts.expect_fit(&words, fits).map_err(within)?;
        Ok(HeaderItem {
            name: item.name.clone(),
            words,
        })
    });
    items.collect()
}

/// Reads the headers that the pattern names, and ignores others.
pub(crate) fn read_headers(
    items: &[HeaderItem],
    headers: &HeaderMap,
    reading: &mut PatternReader,
) -> Result<(), MatchError> {
    for item in items {
        let location = || format!("header `{}`", item.name);
        let mut texts = Vec::new();
        for value in headers.get_all(&item.name) {
            let text = std::str::from_utf8(value.as_bytes())
                .map_err(|_| MatchError::new(location(), "it is not UTF-8"))?;
            texts.push(text);
        }
        let read = item.words.read(&texts, reading);
        read.map_err(|misfit| misfit.within(&location()))?;
    }
    Ok(())
}

/// Writes the headers that the pattern names.
pub(crate) fn write_headers(
    items: &[HeaderItem],
    writing: &PatternWriter<'_>,
) -> Result<Vec<(HeaderName, HeaderValue)>, MatchError> {
    let mut written = Vec::with_capacity(items.len());
    for item in items {
        for text in item.words.write(writing)? {
            let value = item.value(&text);
            let value =
                value.map_err(|what| MatchError::new(format!("header `{}`", item.name), what))?;
            written.push((item.name.clone(), value));
        }
    }
    Ok(written)
}
