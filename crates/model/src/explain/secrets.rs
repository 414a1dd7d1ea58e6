//! Credentials, hidden in every spelling in which they may occur.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Uri};

use crate::redact::Redaction;
use crate::route::Segments;
use dualgauge_patterns::json::{Json, JsonIndex, JsonKind, Spelled, Value};
use dualgauge_patterns::percent::{Keep, Plus, decode, encode};

pub(super) use crate::redact::HIDDEN;

/// The shortest value, in characters, that is hidden everywhere: shorter ones such as `1` occur too often.
const SHORTEST: usize = 3;

/// The texts to hide.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// Collects the values of headers with credentials: the whole value, the part after the scheme, and each cookie.
    pub(super) fn new(headers: &HeaderMap, bears: impl Fn(&HeaderName) -> bool) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in headers.iter().filter(|(name, _)| bears(name)) {
            let text = String::from_utf8_lossy(value.as_bytes());
            secrets.note(&text);
            if let Some((_, credential)) = text.split_once(' ') {
                secrets.note(credential.trim());
            }
            if name == http::header::COOKIE {
                for (_, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
                    secrets.note(value.trim());
                }
            }
        }
        secrets
    }

    /// Adds a text, with its spellings in JSON and in a URL.
    pub(super) fn note(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let quoted = Json::string(text);
        let quoted = String::from_utf8_lossy(quoted.as_bytes());
        let mut encoded = String::new();
        encode(text, Keep::Nothing, &mut encoded);
        self.0.extend([
            text.to_owned(),
            quoted.trim_matches('"').to_owned(),
            encoded,
        ]);
        // The longest goes first, because one secret may be part of another.
        self.0.sort_by_key(|text| std::cmp::Reverse(text.len()));
        self.0.dedup();
    }

    /// Adds the hidden pieces of a path, and the query parameters with hidden names.
    pub(super) fn note_target(&mut self, redaction: &Redaction, uri: &Uri) {
        let path = redaction.path(uri.path());
        let shown: Vec<_> = Segments::split(&path).iter().collect();
        if shown.contains(&HIDDEN) {
            let segments = Segments::split(uri.path());
            for piece in segments.iter().filter(|piece| !shown.contains(piece)) {
                self.note_encoded(piece, Plus::Literal);
            }
        }
        let pairs = uri.query().unwrap_or_default().split('&');
        for (name, value) in pairs.filter_map(|pair| pair.split_once('=')) {
            let name = decode(name, Plus::Space).unwrap_or(name.into());
            if redaction.hides(&name) {
                self.note_encoded(value, Plus::Space);
            }
        }
    }

    fn note_encoded(&mut self, text: &str, plus: Plus) {
        let length = text.chars().count();
        if length < SHORTEST {
            return;
        }
        self.note(text);
        if let Ok(decoded) = decode(text, plus) {
            self.note(&decoded);
        }
    }

    /// Adds the members with hidden names, and everything in them.
    pub(super) fn note_members(&mut self, redaction: &Redaction, body: &[u8], depth: u16) {
        if let Ok(json) = Json::parse(Bytes::copy_from_slice(body), depth) {
            let tree = JsonIndex::read(json.as_bytes());
            self.note_branch(redaction, tree.root(), false);
        }
    }

    /// Adds the hidden values of a branch; `is_hidden` if a member with a hidden name encloses it.
    fn note_branch(&mut self, redaction: &Redaction, branch: Value<'_>, is_hidden: bool) {
        let value = branch.value();
        match branch.kind() {
            JsonKind::Object => {
                for member in branch.children() {
                    let is_hidden = is_hidden || redaction.hides(&member.name().shown());
                    self.note_branch(redaction, member, is_hidden);
                }
            }
            JsonKind::Array => {
                for element in branch.children() {
                    self.note_branch(redaction, element, is_hidden);
                }
            }
            JsonKind::String | JsonKind::Number if is_hidden && value.len() >= SHORTEST => {
                if branch.kind() == JsonKind::String {
                    let text = Spelled::read(value);
                    self.note_long(&text.shown());
                    // The raw spelling as well, because it may contain escapes.
                    let inside = value.get(1..value.len() - 1).unwrap_or_default();
                    self.note_long(&String::from_utf8_lossy(inside));
                } else {
                    self.note_long(&String::from_utf8_lossy(value));
                }
            }
            JsonKind::String | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => {}
        }
    }

    fn note_long(&mut self, text: &str) {
        if text.chars().count() >= SHORTEST {
            self.note(text);
        }
    }

    /// Returns the text with all secrets hidden.
    pub(super) fn hide(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), HIDDEN);
        self.0.iter().fold(text.to_owned(), hide)
    }

    /// Returns the same of a text in bytes.
    pub(super) fn hide_bytes(&self, text: &[u8]) -> String {
        self.hide(&String::from_utf8_lossy(text))
    }
}
