//! Headers that upstreams accept as proof of identity, such as `X-SSL-Client-Verify` and `X-Original-URL`.
//!
//! Any client can send such a header, so the configuration can remove it or have the proxy set it. Many servers read
//! `_` in a name as `-`; so does this module. Laws: a removed header reaches no upstream unless a trusted hop sent it;
//! a header that the proxy sets never keeps a value from the request.
//!
//! Used by `config`, `plan` and `gateway`.

use core::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::client_ip::reads_as;

/// A pattern for header names: a name, or a prefix followed by `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPattern {
    /// In lower case, with `-` in place of `_`.
    name: String,
    is_beginning: bool,
}

/// A text that is not a pattern for header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not an HTTP header name; write a name such as `x-client-cert`, or a prefix such as `x-ssl-client-*`"
)]
pub struct InvalidHeaderPattern;

impl HeaderPattern {
    /// Parses a name such as `x-client-cert`, or a prefix such as `x-ssl-client-*`.
    ///
    /// # Errors
    /// [`InvalidHeaderPattern`].
    pub fn parse(text: &str) -> Result<HeaderPattern, InvalidHeaderPattern> {
        let (name, is_beginning) = match text.strip_suffix('*') {
            Some(name) => (name, true),
            None => (text, false),
        };
        // `*` is valid in a header name (RFC 9110 §5.6.2), but here it matches any suffix.
        if name.contains('*') {
            return Err(InvalidHeaderPattern);
        }
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| InvalidHeaderPattern)?;
        Ok(HeaderPattern {
            name: name.as_str().replace('_', "-"),
            is_beginning,
        })
    }

    /// Returns whether a name matches.
    #[must_use]
    pub fn fits(&self, name: &HeaderName) -> bool {
        let (name, pattern) = (name.as_str().as_bytes(), self.name.as_bytes());
        let name = match self.is_beginning {
            true => name.get(..pattern.len()),
            false => Some(name),
        };
        name.is_some_and(|name| reads_as(name, pattern))
    }

    /// Returns whether a longer name with this prefix may match. The prefix is in lower case.
    #[must_use]
    pub fn fits_after(&self, prefix: &str) -> bool {
        let (prefix, pattern) = (prefix.as_bytes(), self.name.as_bytes());
        let length = prefix.len().min(pattern.len());
        let is_longer = self.is_beginning || pattern.len() > prefix.len();
        is_longer && reads_as(&prefix[..length], &pattern[..length])
    }
}

impl fmt::Display for HeaderPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.is_beginning { "*" } else { "" };
        write!(f, "{}{end}", self.name)
    }
}

/// A fact about a call that a header value can contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityFact {
    /// The name of the client.
    Client,
    /// The identity status of the client: authenticated, declared or unknown.
    Proof,
    /// The client address.
    Address,
    /// The subject of the verified certificate, as RFC 4514 writes it.
    Subject,
}

impl IdentityFact {
    /// Every fact, by its placeholder.
    pub const ALL: [(&'static str, IdentityFact); 4] = [
        ("client", IdentityFact::Client),
        ("proof", IdentityFact::Proof),
        ("address", IdentityFact::Address),
        ("subject", IdentityFact::Subject),
    ];
}

/// The text of a value: literal text and facts.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderTemplate(Vec<TemplatePart>);

#[derive(Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Fact(IdentityFact),
}

/// Hides the text: it may be a secret shared between the proxy and its upstreams.
impl fmt::Debug for HeaderTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template(***)")
    }
}

/// A fault of a [`HeaderTemplate`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderTemplateError {
    /// An unknown placeholder.
    #[error(
        "has the unknown value `{{{0}}}`; write `{{client}}`, `{{proof}}`, `{{address}}` or `{{subject}}`"
    )]
    Unknown(String),
    /// A brace without its counterpart.
    #[error("has an unmatched brace")]
    Brace,
    /// Text that is not valid in a header.
    #[error("is not valid in a header")]
    NoValue,
}

impl HeaderTemplate {
    /// Parses a text with facts in braces, such as `CN={client}`. A doubled brace is that brace.
    ///
    /// # Errors
    /// [`HeaderTemplateError`].
    ///
    /// ```
    /// use dualgauge_model::identity_headers::HeaderTemplate;
    /// assert!(HeaderTemplate::parse("{client}; {proof}").is_ok());
    /// assert!(HeaderTemplate::parse("{{client}}").is_ok());
    /// assert!(HeaderTemplate::parse("{clint}").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<HeaderTemplate, HeaderTemplateError> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, braces) = rest.split_at(at);
            literal.push_str(before);
            let (brace, after) = braces.split_at(1);
            if let Some(more) = after.strip_prefix(brace) {
                literal.push_str(brace);
                rest = more;
                continue;
            }
            let word = after.split_once('}').filter(|_| brace == "{");
            let (word, more) = word
                .filter(|(word, _)| !word.contains('{'))
                .ok_or(HeaderTemplateError::Brace)?;
            let fact = IdentityFact::ALL.iter().find(|(known, _)| *known == word);
            let (_, fact) = fact.ok_or_else(|| HeaderTemplateError::Unknown(word.to_owned()))?;
            add_text(&mut parts, std::mem::take(&mut literal))?;
            parts.push(TemplatePart::Fact(*fact));
            rest = more;
        }
        literal.push_str(rest);
        add_text(&mut parts, literal)?;
        Ok(HeaderTemplate(parts))
    }

    /// Returns the value; `None` if a fact is unknown.
    fn write(&self, facts: &impl Facts) -> Option<HeaderValue> {
        let mut value = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Text(text) => value.push_str(text),
                TemplatePart::Fact(fact) => value.push_str(&facts.text(*fact)?),
            }
        }
        HeaderValue::from_maybe_shared(Bytes::from(value)).ok()
    }
}

/// Adds literal text to a template, unless it is empty.
fn add_text(parts: &mut Vec<TemplatePart>, text: String) -> Result<(), HeaderTemplateError> {
    HeaderValue::from_str(&text).map_err(|_| HeaderTemplateError::NoValue)?;
    if !text.is_empty() {
        parts.push(TemplatePart::Text(text));
    }
    Ok(())
}

/// The facts about a call; computed only when a template uses them.
pub trait Facts {
    /// Returns the text of a fact, if known.
    fn text(&self, fact: IdentityFact) -> Option<String>;
}

/// The headers to remove and to set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdentityHeaders {
    /// `listen.remove_headers`: removed unless a trusted hop sent them.
    pub removed: Vec<HeaderPattern>,
    /// `listen.set_headers`: removed from every request, then written.
    pub written: Vec<(HeaderName, HeaderTemplate)>,
}

impl IdentityHeaders {
    /// Returns true when no header is removed or written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.written.is_empty()
    }

    /// Removes the identity headers that the peer may not send. `is_trusted` tells whether the peer is a trusted hop,
    /// and is called at most once.
    pub fn clean(&self, headers: &mut HeaderMap, is_trusted: impl FnOnce() -> bool) {
        if self.is_empty() {
            return;
        }
        let removed: &[HeaderPattern] = match self.removed.is_empty() || is_trusted() {
            true => &[],
            false => &self.removed,
        };
        let is_refused = |name: &HeaderName| {
            removed.iter().any(|pattern| pattern.fits(name)) || self.writes(name)
        };
        while let Some(name) = headers.keys().find(|name| is_refused(name)).cloned() {
            headers.remove(name);
        }
    }

    /// Writes the headers of an upstream request, replacing others of the same name.
    pub fn write(&self, headers: &mut HeaderMap, facts: &impl Facts) {
        for (name, template) in &self.written {
            match template.write(facts) {
                Some(value) => headers.insert(name, value),
                None => headers.remove(name),
            };
        }
    }

    /// Returns whether the proxy writes a header, in this spelling or with `_` in place of `-`.
    #[must_use]
    pub fn writes(&self, name: &HeaderName) -> bool {
        let is_same = |written: &HeaderName| {
            let (written, name) = (written.as_str().as_bytes(), name.as_str().as_bytes());
            // Either name may have the `_`.
            let same = |(one, other): (&u8, &u8)| {
                one == other || (matches!(one, b'_' | b'-') && matches!(other, b'_' | b'-'))
            };
            written.len() == name.len() && written.iter().zip(name).all(same)
        };
        self.written.iter().any(|(written, _)| is_same(written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl Facts for Known {
        fn text(&self, fact: IdentityFact) -> Option<String> {
            match fact {
                IdentityFact::Client => Some("ios".to_owned()),
                IdentityFact::Proof => Some("declared".to_owned()),
                IdentityFact::Address => Some("192.0.2.7".to_owned()),
                IdentityFact::Subject => None,
            }
        }
    }

    fn headers(names: &[&'static str]) -> HeaderMap {
        let names = names.iter();
        let pairs = names.map(|name| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static("theirs"))
        });
        pairs.collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    fn rules() -> IdentityHeaders {
        let pattern = |text: &str| HeaderPattern::parse(text).unwrap();
        let written = |name, text: &str| {
            let name = HeaderName::from_static(name);
            (name, HeaderTemplate::parse(text).unwrap())
        };
        IdentityHeaders {
            removed: vec![pattern("X-SSL_Client-*"), pattern("x-original-url")],
            written: vec![
                written("x-client", "{client} ({proof})"),
                written("x-subject", "{subject}"),
                written("x-tls_hop", "on"),
            ],
        }
    }

    #[test]
    fn headers_of_untrusted_peers_are_removed_in_every_spelling() {
        let sent = [
            "accept",
            "x-ssl-client-",
            "x-ssl-client-cn",
            "x_ssl_client_verify",
            "x-ssl-clien",
            "x-original-url",
            "x-original_url",
            "x-original-url-2",
            "x_client",
            "x-client",
            "x_tls-hop",
        ];
        let mut headers = headers(&sent);
        let mut trusted = headers.clone();
        rules().clean(&mut headers, || false);
        let remaining = ["accept", "x-original-url-2", "x-ssl-clien"];
        assert_eq!(names(&headers), remaining);
        rules().clean(&mut trusted, || true);
        let remaining = [
            "accept",
            "x-original-url",
            "x-original-url-2",
            "x-original_url",
            "x-ssl-clien",
            "x-ssl-client-",
            "x-ssl-client-cn",
            "x_ssl_client_verify",
        ];
        assert_eq!(
            names(&trusted),
            remaining,
            "no peer may set a written header"
        );
    }

    #[test]
    fn doubled_braces_are_text() {
        for (text, value) in [
            ("{{client}}", "{client}"),
            ("{{\"a\": {{}}}}", "{\"a\": {}}"),
            ("{{{client}}}", "{ios}"),
            ("}}{client}{{", "}ios{"),
        ] {
            let template = HeaderTemplate::parse(text).unwrap();
            assert_eq!(template.write(&Known).unwrap(), value, "{text}");
        }
        for text in ["{", "}", "{client", "client}", "{{client}", "{a{client}"] {
            let fault = HeaderTemplate::parse(text);
            assert_eq!(fault, Err(HeaderTemplateError::Brace), "{text}");
        }
    }

    #[test]
    fn a_prefix_meets_patterns_in_every_spelling() {
        for (pattern, prefix, meets) in [
            ("x-user-role", "x-user-", true),
            ("X_User_Role", "x_user-", true),
            ("x-user-", "x-user-", false),
            ("x-users", "x-user-", false),
            ("x-user-*", "x-user-", true),
            ("x-u*", "x-user-", true),
            ("x-user-role-*", "x-user-", true),
            ("x-usage-*", "x-user-", false),
        ] {
            let parsed = HeaderPattern::parse(pattern).unwrap();
            assert_eq!(parsed.fits_after(prefix), meets, "{pattern} {prefix}");
        }
    }

    #[test]
    fn written_headers_replace_those_that_were_sent() {
        let mut headers = headers(&["x-client", "x-subject"]);
        rules().write(&mut headers, &Known);
        assert_eq!(names(&headers), ["x-client", "x-tls_hop"]);
        assert_eq!(headers["x-client"], "ios (declared)");
        assert_eq!(headers["x-tls_hop"], "on");
    }

    #[test]
    fn trust_is_not_checked_without_rules() {
        let mut sent = headers(&["x-client-cert"]);
        IdentityHeaders::default().clean(&mut sent, || unreachable!());
        assert_eq!(names(&sent), ["x-client-cert"]);
    }

    #[test]
    fn invalid_patterns_and_values_are_rejected() {
        for text in ["", "*", "a b", "x-*-y", "x-**"] {
            assert_eq!(
                HeaderPattern::parse(text),
                Err(InvalidHeaderPattern),
                "{text}"
            );
        }
        for text in ["{client", "client}", "{{client}", "a}{client}"] {
            assert_eq!(
                HeaderTemplate::parse(text),
                Err(HeaderTemplateError::Brace),
                "{text}"
            );
        }
        let unknown = HeaderTemplateError::Unknown("cn".to_owned());
        assert_eq!(HeaderTemplate::parse("{cn}"), Err(unknown));
        assert_eq!(
            HeaderTemplate::parse("a\nb"),
            Err(HeaderTemplateError::NoValue)
        );
    }
}
