//! Bearer tokens of the API (RFC 6750 §2.1), stored as hashes only. Used by `admin::problem` and `admin::response`.

use http::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest, Sha256};

/// The tokens of the API, each with the name of its owner.
#[derive(Clone, Default)]
pub struct AdminTokens(Vec<(String, [u8; 32])>);

impl std::fmt::Debug for AdminTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_tuple("AdminTokens")
            .field(&names.collect::<Vec<_>>())
            .finish()
    }
}

/// A failed authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum AuthError {
    /// No tokens are configured.
    #[error(
        "the API is disabled on an address that other machines can reach; set tokens with \
         `[admin] tokens = {{ NAME = \"sha256:…\" }}`, or set `admin.address` to a loopback address"
    )]
    Closed,
    /// The request has no token.
    #[error("the API needs a token")]
    Missing,
    /// The token is unknown.
    #[error("the token is not one of `admin.tokens`")]
    Unknown,
}

impl AdminTokens {
    /// Creates tokens from names and SHA-256 digests.
    #[must_use]
    pub fn new(tokens: Vec<(String, [u8; 32])>) -> AdminTokens {
        AdminTokens(tokens)
    }

    /// Returns true if no tokens are configured.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the owner of the request's token.
    pub(super) fn bearer(&self, headers: &HeaderMap) -> Result<&str, AuthError> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(AuthError::Missing);
        };
        let bytes = value.as_bytes();
        let scheme = bytes.split_at_checked(7).ok_or(AuthError::Missing)?;
        let (scheme, token) = scheme;
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return Err(AuthError::Missing);
        }
        let digest: [u8; 32] = Sha256::digest(token.trim_ascii()).into();
        // All tokens are compared, so that the time reveals nothing.
        let mut bearer = None;
        for (name, known) in &self.0 {
            if same(&digest, known) {
                bearer = Some(name.as_str());
            }
        }
        bearer.ok_or(AuthError::Unknown)
    }
}

/// Compares in constant time.
fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let differences = one.iter().zip(other).map(|(one, other)| one ^ other);
    std::hint::black_box(differences.fold(0, |all, difference| all | difference)) == 0
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_bearer_of_a_token_is_known() {
        let digest = |text: &str| Sha256::digest(text).into();
        let tokens = AdminTokens::new(vec![
            ("anna".to_owned(), digest("secret")),
            ("ben".to_owned(), digest("other")),
        ]);
        let bearer = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            tokens.bearer(&headers).map(str::to_owned)
        };
        assert_eq!(bearer(&["Bearer secret"]).as_deref(), Ok("anna"));
        assert_eq!(bearer(&["bearer other "]).as_deref(), Ok("ben"));
        for missing in [
            &[][..],
            &["secret"],
            &["Basic secret"],
            &["Bearer secret", "Bearer secret"],
        ] {
            assert_eq!(bearer(missing), Err(AuthError::Missing), "{missing:?}");
        }
        for unknown in ["Bearer secre", "Bearer ", "Bearer Secret"] {
            assert_eq!(bearer(&[unknown]), Err(AuthError::Unknown), "{unknown}");
        }
        assert!(
            !format!("{tokens:?}").contains("secret") && format!("{tokens:?}").contains("anna")
        );
    }
}
