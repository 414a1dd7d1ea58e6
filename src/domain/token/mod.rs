//! Bearer tokens: which keys sign them, and what a token must say to be believed.
//!
//! Verifying is a function of the token, the keys and the time. Laws: the algorithm belongs to the key, so a token
//! never chooses how it is verified; claims are seen by nobody before the signature is known to be good.

mod claims;
mod key;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

pub use claims::{ClaimPath, Claims};
pub use key::{Algorithm, KeyFault, TokenKey, key_set};

/// Longer than any token that a header of usual servers takes.
const LONGEST: usize = 8 * 1024;

/// Whose tokens are believed.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// The keys that sign them.
    pub keys: Vec<TokenKey>,
    /// What `iss` must be; anything where absent.
    pub issuer: Option<String>,
    /// What `aud` must name one of; anything where empty.
    pub audience: Vec<String>,
    /// How far clocks may differ, in seconds.
    pub leeway_seconds: u64,
}

/// Why a token proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenFault {
    /// It is longer than any that is looked at.
    TooLong,
    /// It is no signed token, or has no algorithm that is known.
    Malformed,
    /// No key has its algorithm and its key id.
    NoKey,
    /// No key has signed it.
    Signature,
    /// It does not say until when it holds.
    NoExpiry,
    /// It held once.
    Expired,
    /// It does not hold yet.
    NotYet,
    /// It is of another issuer.
    Issuer,
    /// It is for another audience.
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

    /// The word used in metrics and explanations.
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

/// The bearer token of a call; none where there are two credentials, of which nobody knows which one counts.
#[must_use]
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut said = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (said.next(), said.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Tokens {
    /// Verifies a token at a time, in seconds since 1970.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub fn verify(&self, token: &str, unix_seconds: u64) -> Result<Claims, TokenFault> {
        let claims = self.signed(token)?;
        self.accept(&claims, unix_seconds)?;
        Ok(claims)
    }

    /// The claims of a token that one of the keys has signed, whatever they say. What a key has signed once stays
    /// signed, so this may be remembered; [`Tokens::accept`] is asked each time.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub fn signed(&self, token: &str) -> Result<Claims, TokenFault> {
        if token.len() > LONGEST {
            return Err(TokenFault::TooLong);
        }
        let header = decode_header(token).map_err(|_| TokenFault::Malformed)?;
        // RFC 7515 §4.1.11: who does not understand an extension that is critical must not accept the token.
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

    /// Whether signed claims hold at a time, in seconds since 1970, for whom and of whom they are meant to.
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

/// Looks at the signature and at nothing else: the library would read a clock of its own.
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
