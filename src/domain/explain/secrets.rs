//! Credentials: what must not be shown, in every spelling that it may have.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Uri};

use crate::domain::json::{Json, JsonIndex, JsonKind, Spelled, Value};
use crate::domain::percent::{Keep, Plus, decode, encode};
use crate::domain::redact::Redaction;
use crate::domain::route::Segments;

pub(super) use crate::domain::redact::HIDDEN;

/// Characters of the shortest value that is looked for wherever it may stand: `1` stands everywhere.
const SHORTEST: usize = 3;

/// Whether the name of something on the way is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenSecrets {
    Open,
    Hidden,
}

/// Texts that are not shown.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The values of the headers that bear credentials: as a whole, behind a scheme, and cookie by cookie.
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

    /// Adds a text, and how it is spelled inside of JSON and of a URL.
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
        // The longest first: a secret may be a part of another.
        self.0.sort_by_key(|text| std::cmp::Reverse(text.len()));
        self.0.dedup();
    }

    /// Adds the hidden pieces of a path, and the parameters of hidden names.
    pub(super) fn note_target(&mut self, redaction: &Redaction, uri: &Uri) {
        let path = redaction.path(uri.path());
        let shown: Vec<_> = Segments::split(&path).iter().collect();
        if shown.contains(&HIDDEN) {
            let came = Segments::split(uri.path());
            for piece in came.iter().filter(|piece| !shown.contains(piece)) {
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
        let came = text.chars().count();
        if came < SHORTEST {
            return;
        }
        self.note(text);
        if let Ok(decoded) = decode(text, plus) {
            self.note(&decoded);
        }
    }

    /// Adds the members of hidden names, with all that is in them.
    pub(super) fn note_members(&mut self, redaction: &Redaction, body: &[u8], depth: u16) {
        if let Ok(json) = Json::parse(Bytes::copy_from_slice(body), depth) {
            let tree = JsonIndex::read(json.as_bytes());
            self.note_branch(redaction, (tree.root(), SeenSecrets::Open));
        }
    }

    fn note_branch(&mut self, redaction: &Redaction, (branch, seen): (Value<'_>, SeenSecrets)) {
        let value = branch.value();
        match branch.kind() {
            JsonKind::Object => {
                for member in branch.children() {
                    let hidden =
                        seen == SeenSecrets::Hidden || redaction.hides(&member.name().shown());
                    let seen = if hidden {
                        SeenSecrets::Hidden
                    } else {
                        SeenSecrets::Open
                    };
                    self.note_branch(redaction, (member, seen));
                }
            }
            JsonKind::Array => {
                for element in branch.children() {
                    self.note_branch(redaction, (element, seen));
                }
            }
            JsonKind::String | JsonKind::Number
                if seen == SeenSecrets::Hidden && value.len() >= SHORTEST =>
            {
                if branch.kind() == JsonKind::String {
                    let text = Spelled::read(value);
                    self.note_long(&text.shown());
                    // As it came, for it may have been spelled with escapes.
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

    /// The text without what is not shown.
    pub(super) fn hide(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), HIDDEN);
        self.0.iter().fold(text.to_owned(), hide)
    }

    /// The same of bytes that are a text.
    pub(super) fn hide_bytes(&self, text: &[u8]) -> String {
        self.hide(&String::from_utf8_lossy(text))
    }
}
