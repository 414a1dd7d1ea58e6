//! The login call of a link: its template, its values, and the answer to it.
//!
//! A template is JSON text with placeholders. Secrets are filled in when the configuration is read, credentials of a
//! caller when its link is opened. Law: a value is always one JSON string, or a part of one, whatever it contains.
//!
//! Used by `app`, `config`, `gateway`, `pending`, `plan` and `upstream`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use super::expected_result::ExpectedResult;
use dualgauge_patterns::json::Json;

/// The results of logins so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoginCounts {
    /// Logins that succeeded.
    pub ok: u64,
    /// Logins that the server refused.
    pub refused: u64,
    /// Logins without an answer in time.
    pub timeout: u64,
    /// Logins during which the link broke.
    pub cut: u64,
}

/// A credential of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerCredential {
    /// The token of `Authorization: Bearer`.
    Bearer,
    /// The user of `Authorization: Basic`.
    User,
    /// The password of `Authorization: Basic`.
    Password,
    /// The value of a header.
    Header(HeaderName),
}

/// The names of the credentials in `Authorization`.
const IN_AUTHORIZATION: [(&str, CallerCredential); 3] = [
    ("bearer", CallerCredential::Bearer),
    ("user", CallerCredential::User),
    ("password", CallerCredential::Password),
];

impl CallerCredential {
    /// Returns the credential with this name in `{authorization:NAME}`.
    #[must_use]
    pub fn in_authorization(name: &str) -> Option<CallerCredential> {
        let mut all = IN_AUTHORIZATION.into_iter();
        all.find_map(|(known, credential)| (known == name).then_some(credential))
    }

    /// Returns the value in the headers of a caller. A header that occurs twice has none: it is ambiguous.
    fn of(&self, headers: &HeaderMap) -> Option<String> {
        let only = |name: &HeaderName| {
            let mut values = headers.get_all(name).iter();
            let value = values.next()?.to_str().ok()?;
            values.next().is_none().then_some(value.trim())
        };
        let value = match self {
            CallerCredential::Header(name) => only(name)?.to_owned(),
            CallerCredential::Bearer => of_scheme(only(&AUTHORIZATION)?, "bearer")?.to_owned(),
            CallerCredential::User => basic(only(&AUTHORIZATION)?)?.0,
            CallerCredential::Password => basic(only(&AUTHORIZATION)?)?.1,
        };
        (!value.is_empty()).then_some(value)
    }
}

/// Returns the credentials of an authentication scheme, whose name is case-insensitive (RFC 9110 §11.1).
fn of_scheme<'v>(value: &'v str, scheme: &str) -> Option<&'v str> {
    let (found, rest) = value.split_once(' ')?;
    found.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

/// Returns the user and the password of `Basic` (RFC 7617 §2).
fn basic(value: &str) -> Option<(String, String)> {
    let decoded = STANDARD.decode(of_scheme(value, "basic")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// A part of the params of a login.
#[derive(Clone, PartialEq, Eq)]
pub enum LoginPart {
    /// JSON text.
    Json(String),
    /// Text within a JSON string, and the file it was read from, if any.
    Secret(String, Option<PathBuf>),
    /// A credential of the caller, within a JSON string.
    Caller(CallerCredential),
}

/// The text of a part may be a secret.
impl fmt::Debug for LoginPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginPart::Json(_) | LoginPart::Secret(..) => f.write_str("***"),
            LoginPart::Caller(credential) => credential.fmt(f),
        }
    }
}

/// The login of the links of an upstream, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginTemplate {
    /// The method.
    pub method: String,
    /// The params, as JSON text.
    pub params: Vec<LoginPart>,
    /// The results of successful logins; `None` for any result other than `false`.
    pub expect: Option<Arc<ExpectedResult>>,
}

impl LoginTemplate {
    /// Returns true if the login takes values from the caller.
    #[must_use]
    pub fn needs_caller(&self) -> bool {
        let mut parts = self.params.iter();
        parts.any(|part| matches!(part, LoginPart::Caller(_)))
    }

    /// Returns the headers of callers that the login takes values from.
    pub fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.params.iter().filter_map(|part| match part {
            LoginPart::Caller(CallerCredential::Header(name)) => Some(name),
            LoginPart::Caller(_) => Some(&AUTHORIZATION),
            LoginPart::Json(_) | LoginPart::Secret(..) => None,
        })
    }

    /// Returns the call for the credentials in `headers`; `None` if one is missing.
    #[must_use]
    pub fn call_for(&self, headers: &HeaderMap) -> Option<LoginCall> {
        let mut params = String::new();
        for part in &self.params {
            match part {
                LoginPart::Json(text) => params.push_str(text),
                LoginPart::Secret(text, _) => push_escaped(&mut params, text),
                LoginPart::Caller(credential) => {
                    push_escaped(&mut params, &credential.of(headers)?)
                }
            }
        }
        Some(LoginCall {
            method: self.method.clone(),
            params: Bytes::from(params),
            whose: match self.needs_caller() {
                true => LoginOwner::Caller,
                false => LoginOwner::Proxy,
            },
            expect: self.expect.clone(),
        })
    }

    /// Returns true if the templates differ only in values that were read from files: secrets are rotated there.
    #[must_use]
    pub fn is_renewed_by(&self, other: &LoginTemplate) -> bool {
        let same = |(one, other): (&LoginPart, &LoginPart)| match (one, other) {
            (LoginPart::Secret(_, Some(one)), LoginPart::Secret(_, Some(other))) => one == other,
            (one, other) => one == other,
        };
        self.method == other.method
            && self.expect == other.expect
            && self.params.len() == other.params.len()
            && self.params.iter().zip(&other.params).all(same)
    }
}

/// Appends text to a JSON string.
fn push_escaped(to: &mut String, text: &str) {
    let quoted = Json::string(text).into_bytes();
    let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    to.push_str(&String::from_utf8_lossy(inside));
}

/// The owner of the credentials of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginOwner {
    /// The configuration: a refused login is tried again.
    Proxy,
    /// The caller: a refused login ends the link.
    Caller,
}

/// The login call of one link.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginCall {
    pub(super) method: String,
    /// JSON text.
    pub(super) params: Bytes,
    /// The owner of the credentials.
    pub whose: LoginOwner,
    /// The results of successful logins; `None` for any result other than `false`.
    pub(super) expect: Option<Arc<ExpectedResult>>,
}

impl LoginCall {
    /// Returns the params, as JSON text.
    #[must_use]
    pub fn params(&self) -> &Bytes {
        &self.params
    }
}

/// The params are secret.
impl fmt::Debug for LoginCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginCall({}, ***)", self.method)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(parts: Vec<LoginPart>) -> LoginTemplate {
        LoginTemplate {
            method: "log_in".to_owned(),
            params: parts,
            expect: None,
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        let pairs =
            pairs.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        pairs.collect()
    }

    fn around(part: LoginPart) -> LoginTemplate {
        let text = |text: &str| LoginPart::Json(text.to_owned());
        template(vec![text("[\""), part, text("\"]")])
    }

    #[test]
    fn credentials_are_read_from_the_headers_of_the_caller() {
        let basic = format!("Basic {}", STANDARD.encode("ann:a:b"));
        for (credential, value, wanted) in [
            (CallerCredential::Bearer, "bearer  s3 ", Some("[\"s3\"]")),
            (CallerCredential::Bearer, basic.as_str(), None),
            (CallerCredential::Bearer, "Bearer ", None),
            (CallerCredential::User, &basic, Some("[\"ann\"]")),
            (CallerCredential::Password, &basic, Some("[\"a:b\"]")),
            (CallerCredential::Password, "Basic !", None),
            (
                CallerCredential::Header(AUTHORIZATION),
                "a\"b",
                Some("[\"a\\\"b\"]"),
            ),
        ] {
            let call = around(LoginPart::Caller(credential))
                .call_for(&headers(&[("authorization", value)]));
            let params = call.map(|call| call.params);
            assert_eq!(params.as_deref(), wanted.map(str::as_bytes), "{value}");
        }
        let twice = headers(&[("x-key", "a"), ("x-key", "b")]);
        let of_header = CallerCredential::Header(HeaderName::from_static("x-key"));
        assert_eq!(around(LoginPart::Caller(of_header)).call_for(&twice), None);
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret = around(LoginPart::Secret("s3cret".to_owned(), None));
        let call = secret.call_for(&HeaderMap::new()).unwrap();
        assert_eq!(call.params, "[\"s3cret\"]");
        let printed = format!("{secret:?} {call:?}");
        assert!(!printed.contains("s3cret"), "{printed}");
    }

    #[test]
    fn a_new_content_of_the_same_file_renews_a_login() {
        let of = |text: &str, file: Option<&str>| {
            around(LoginPart::Secret(text.to_owned(), file.map(PathBuf::from)))
        };
        assert!(of("a", Some("key")).is_renewed_by(&of("b", Some("key"))));
        assert!(!of("a", Some("key")).is_renewed_by(&of("a", Some("other"))));
        assert!(!of("a", None).is_renewed_by(&of("b", None)));
    }

    proptest! {
        #[test]
        fn a_value_is_always_one_string(text in any::<String>()) {
            let call = around(LoginPart::Secret(text.clone(), None)).call_for(&HeaderMap::new()).unwrap();
            let parsed: Vec<String> = serde_json::from_slice(&call.params).unwrap();
            prop_assert_eq!(parsed, vec![text]);
        }
    }
}
