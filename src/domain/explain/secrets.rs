//! Credentials: what must not be shown, in every spelling that it may have.

use http::{HeaderMap, HeaderName};

use crate::domain::json::Json;
use crate::domain::percent::{Keep, encode};

/// What stands for a credential.
pub(super) const HIDDEN: &str = "***";

/// Texts that are not shown.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The values of the headers that bear credentials: as a whole, behind a scheme, and cookie by cookie.
    pub(super) fn of(headers: &HeaderMap, bears: impl Fn(&HeaderName) -> bool) -> Secrets {
        let mut secrets = Secrets::default();
        for (name, value) in headers.iter().filter(|(name, _)| bears(name)) {
            let text = String::from_utf8_lossy(value.as_bytes());
            secrets.learn(&text);
            if let Some((_, credential)) = text.split_once(' ') {
                secrets.learn(credential.trim());
            }
            if name == http::header::COOKIE {
                for (_, value) in text.split(';').filter_map(|pair| pair.split_once('=')) {
                    secrets.learn(value.trim());
                }
            }
        }
        secrets
    }

    /// Adds a text, and how it is spelled inside of JSON and of a URL.
    pub(super) fn learn(&mut self, text: &str) {
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
