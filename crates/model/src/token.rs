//! Bearer tokens: their signing keys, and the claims that they must have.
//!
//! Verification is a function of the token, the keys and the time. Laws: the algorithm belongs to the key, so a token
//! never chooses its verification; claims are used only after the signature was verified.
//!
//! Used by `config`, `rollout`, `gateway` and `telemetry`.

mod claims;
mod key;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

pub use claims::{ClaimPath, Claims};
pub use key::{Algorithm, KeyFault, TokenKey, key_set};

/// Longer than any token that fits the header limits of common servers.
const LONGEST: usize = 8 * 1024;

/// The rules by which tokens are accepted.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The signing keys.
    pub keys: Vec<TokenKey>,
    /// The required `iss`; `None` for any.
    pub issuer: Option<String>,
    /// The accepted values of `aud`; empty for any.
    pub audience: Vec<String>,
    /// Allowed clock skew, in seconds.
    pub leeway_seconds: u64,
}

/// The reason why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenFault {
    /// The token exceeds the length limit.
    TooLong,
    /// The token is not signed, or has an unknown algorithm.
    Malformed,
    /// No key has its algorithm and key id.
    NoKey,
    /// No key verifies its signature.
    Signature,
    /// The token has no expiry.
    NoExpiry,
    /// The token has expired.
    Expired,
    /// The token is not yet valid.
    NotYet,
    /// The token is from another issuer.
    Issuer,
    /// The token is for another audience.
    Audience,
}

impl TokenFault {
    /// Every fault.
    pub const ALL: [TokenFault; 9] = [
        TokenFault::TooLong,
        TokenFault::Malformed,
        TokenFault::NoKey,
        TokenFault::Signature,
        TokenFault::NoExpiry,
        TokenFault::Expired,
        TokenFault::NotYet,
        TokenFault::Issuer,
        TokenFault::Audience,
    ];

    /// Returns the word used in metrics and explanations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TokenFault::TooLong => "too_long",
            TokenFault::Malformed => "malformed",
            TokenFault::NoKey => "no_key",
            TokenFault::Signature => "signature",
            TokenFault::NoExpiry => "no_expiry",
            TokenFault::Expired => "expired",
            TokenFault::NotYet => "not_yet",
            TokenFault::Issuer => "issuer",
            TokenFault::Audience => "audience",
        }
    }
}

/// Returns the bearer token of a call; `None` if it has several credentials, since it is ambiguous which one counts.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (values.next(), values.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Tokens {
    /// Verifies a token at a time in seconds since 1970.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub fn verify(&self, token: &str, unix_seconds: u64) -> Result<Claims, TokenFault> {
        let claims = self.signed(token)?;
        self.accept(&claims, unix_seconds)?;
        Ok(claims)
    }

    /// Verifies the signature and returns the claims unchecked. A signature stays valid, so the result may be cached;
    /// [`Tokens::accept`] is called each time.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub fn signed(&self, token: &str) -> Result<Claims, TokenFault> {
        if token.len() > LONGEST {
            return Err(TokenFault::TooLong);
        }
        let header = decode_header(token).map_err(|_| TokenFault::Malformed)?;
        // RFC 7515 §4.1.11: a recipient must reject a token with a critical extension that it does not understand.
        if header.crit.is_some() {
            return Err(TokenFault::Malformed);
        }
        let mut keys = self
            .keys
            .iter()
            .filter(|key| key.may_sign(header.alg, header.kid.as_deref()))
            .peekable();
        if keys.peek().is_none() {
            return Err(TokenFault::NoKey);
        }
        let mut read = keys.filter_map(|key| {
            let decoded = decode::<Map<String, Value>>(token, key.material(), &signature_of(key));
            Some(Claims::new(decoded.ok()?.claims))
        });
        read.next().ok_or(TokenFault::Signature)
    }

    /// Checks signed claims at a time in seconds since 1970: their validity period, issuer and audience.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub fn accept(&self, claims: &Claims, unix_seconds: u64) -> Result<(), TokenFault> {
        let leeway = self.leeway_seconds as f64;
        let now = unix_seconds as f64;
        // RFC 7519 §2: a NumericDate may have a fraction.
        let expiry = claims.number("exp").ok_or(TokenFault::NoExpiry)?;
        if now >= expiry + leeway {
            return Err(TokenFault::Expired);
        }
        if claims.has("nbf")
            && claims
                .number("nbf")
                .is_none_or(|begin| now + leeway < begin)
        {
            return Err(TokenFault::NotYet);
        }
        let issued = |issuer: &String| claims.names("iss", issuer);
        if !self.issuer.as_ref().is_none_or(issued) {
            return Err(TokenFault::Issuer);
        }
        let mut audience = self.audience.iter();
        if !self.audience.is_empty() && !audience.any(|name| claims.names("aud", name)) {
            return Err(TokenFault::Audience);
        }
        Ok(())
    }
}

/// Returns settings that verify only the signature: the library would otherwise read its own clock.
fn signature_of(key: &TokenKey) -> Validation {
    let mut validation = Validation::new(key.algorithm().into());
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_nbf = false;
    validation.validate_aud = false;
    validation
}

#[cfg(test)]
mod tests;
