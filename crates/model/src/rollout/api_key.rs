//! API keys in calls: in a header of their own, as a bearer token, or as the password of HTTP Basic.
//!
//! Law: a call has at most one key; the header of its own precedes `authorization`.
//!
//! Used by `config`, `document` and `rollout`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::token::bearer;

/// The longest credentials of HTTP Basic that are decoded.
const LONGEST: usize = 8 * 1024;

/// The places of API keys beside their header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApiKeyForms {
    /// A key may be the bearer token (RFC 6750).
    pub bearer: bool,
    /// A key may be the password of HTTP Basic (RFC 7617), with any user name. Browsers ask for it.
    pub basic: bool,
}

/// The places of API keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeys {
    /// The header of keys.
    pub header: HeaderName,
    /// The other places.
    pub forms: ApiKeyForms,
}

impl ApiKeys {
    /// Returns the key of a call.
    #[must_use]
    pub fn find<'a>(&self, headers: &'a HeaderMap) -> Option<Cow<'a, [u8]>> {
        if let Some(key) = headers.get(&self.header) {
            return Some(Cow::Borrowed(key.as_bytes()));
        }
        let bearer = self.forms.bearer.then(|| bearer(headers)).flatten();
        if let Some(token) = bearer {
            return Some(Cow::Borrowed(token.as_bytes()));
        }
        let password = self.forms.basic.then(|| password(headers)).flatten();
        password.map(Cow::Owned)
    }

    /// Returns true if a call has credentials in one of the places, or in `authorization`.
    #[must_use]
    pub fn are_stated(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(&self.header) || headers.contains_key(AUTHORIZATION)
    }
}

/// Returns the password of HTTP Basic; `None` if a call has several credentials.
fn password(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, credentials) = HeaderValue::to_str(only).ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") || credentials.len() > LONGEST {
        return None;
    }
    let decoded = STANDARD.decode(credentials.trim()).ok()?;
    // A user name has no colon, a password may have some (RFC 7617 §2).
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let password = &decoded[colon + 1..];
    (!password.is_empty()).then(|| password.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASIC: ApiKeyForms = ApiKeyForms {
        bearer: false,
        basic: true,
    };
    const BEARER: ApiKeyForms = ApiKeyForms {
        bearer: true,
        basic: false,
    };
    const BOTH: ApiKeyForms = ApiKeyForms {
        bearer: true,
        basic: true,
    };

    fn found(forms: ApiKeyForms, lines: &[(&'static str, &str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let keys = ApiKeys {
            header: HeaderName::from_static("x-api-key"),
            forms,
        };
        let key = keys.find(&headers)?;
        Some(String::from_utf8(key.into_owned()).unwrap())
    }

    fn basic(text: &str) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn a_key_is_found_in_each_accepted_place() {
        let key = |text: &str| Some(text.to_owned());
        let password = basic("user:a:b");
        let by_password = [("authorization", password.as_str())];
        assert_eq!(found(BASIC, &by_password), key("a:b"));
        assert_eq!(found(BEARER, &by_password), None);
        let by_token = [("authorization", "bearer abc")];
        assert_eq!(found(BOTH, &by_token), key("abc"));
        assert_eq!(found(BASIC, &by_token), None);
        let both = [("authorization", "Bearer abc"), ("x-api-key", "own")];
        assert_eq!(found(BOTH, &both), key("own"));
    }

    #[test]
    fn other_credentials_are_no_key() {
        let twice = basic("user:key");
        for lines in [
            &[("authorization", "Basic ???")][..],
            &[("authorization", "Basic")],
            &[("authorization", &basic("nobody"))],
            &[("authorization", &basic("user:"))],
            &[(
                "authorization",
                &basic(&format!("user:{}", "x".repeat(LONGEST))),
            )],
            &[("authorization", &twice), ("authorization", &twice)],
            &[("authorization", "Digest username=\"user\"")],
            &[],
        ] {
            assert_eq!(found(BOTH, lines), None, "{lines:?}");
        }
    }
}
