//! Signing keys of tokens, each with its one algorithm.
//!
//! Used by `config::compile::identity`, `config::decode::identity` and `config::raw::identity`.

use core::fmt;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use serde_json::Value;

/// A signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSA, PKCS #1 1.5, with SHA-256.
    Rs256,
    /// RSA, PKCS #1 1.5, with SHA-384.
    Rs384,
    /// RSA, PKCS #1 1.5, with SHA-512.
    Rs512,
    /// RSA, PSS, with SHA-256.
    Ps256,
    /// RSA, PSS, with SHA-384.
    Ps384,
    /// RSA, PSS, with SHA-512.
    Ps512,
    /// ECDSA over P-256.
    Es256,
    /// ECDSA over P-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// The algorithms with a shared secret, by name.
    pub const OF_SECRETS: &[(&str, Algorithm)] = &[
        ("HS256", Algorithm::Hs256),
        ("HS384", Algorithm::Hs384),
        ("HS512", Algorithm::Hs512),
    ];

    /// The algorithms with a public key, by name.
    pub const OF_PUBLIC_KEYS: &[(&str, Algorithm)] = &[
        ("RS256", Algorithm::Rs256),
        ("RS384", Algorithm::Rs384),
        ("RS512", Algorithm::Rs512),
        ("PS256", Algorithm::Ps256),
        ("PS384", Algorithm::Ps384),
        ("PS512", Algorithm::Ps512),
        ("ES256", Algorithm::Es256),
        ("ES384", Algorithm::Es384),
        ("EdDSA", Algorithm::EdDsa),
    ];

    fn parse(word: &str) -> Option<Algorithm> {
        let mut known = Self::OF_SECRETS.iter().chain(Self::OF_PUBLIC_KEYS);
        known
            .find(|(name, _)| *name == word)
            .map(|(_, algorithm)| *algorithm)
    }

    const fn kind(self) -> KeyKind {
        match self {
            Algorithm::Hs256 | Algorithm::Hs384 | Algorithm::Hs512 => KeyKind::Secret,
            Algorithm::Rs256
            | Algorithm::Rs384
            | Algorithm::Rs512
            | Algorithm::Ps256
            | Algorithm::Ps384
            | Algorithm::Ps512 => KeyKind::Rsa,
            Algorithm::Es256 => KeyKind::P256,
            Algorithm::Es384 => KeyKind::P384,
            Algorithm::EdDsa => KeyKind::Ed25519,
        }
    }

    /// The minimum length of a secret in bytes: that of the hash (RFC 7518 §3.2).
    const fn least_secret(self) -> usize {
        match self {
            Algorithm::Hs512 => 64,
            Algorithm::Hs384 => 48,
            Algorithm::Hs256
            | Algorithm::Rs256
            | Algorithm::Rs384
            | Algorithm::Rs512
            | Algorithm::Ps256
            | Algorithm::Ps384
            | Algorithm::Ps512
            | Algorithm::Es256
            | Algorithm::Es384
            | Algorithm::EdDsa => 32,
        }
    }
}

impl From<Algorithm> for jsonwebtoken::Algorithm {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Hs256 => Self::HS256,
            Algorithm::Hs384 => Self::HS384,
            Algorithm::Hs512 => Self::HS512,
            Algorithm::Rs256 => Self::RS256,
            Algorithm::Rs384 => Self::RS384,
            Algorithm::Rs512 => Self::RS512,
            Algorithm::Ps256 => Self::PS256,
            Algorithm::Ps384 => Self::PS384,
            Algorithm::Ps512 => Self::PS512,
            Algorithm::Es256 => Self::ES256,
            Algorithm::Es384 => Self::ES384,
            Algorithm::EdDsa => Self::EdDSA,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Secret,
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// The reason why a key is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// A secret short enough to guess.
    #[error("the secret has {found} bytes; its algorithm needs at least {least}")]
    ShortSecret {
        /// Its length.
        found: usize,
        /// The required length.
        least: usize,
    },
    /// Not a key of this algorithm.
    #[error("it is not a PEM public key for this algorithm")]
    NoPublicKey,
    /// Not a JWK set.
    #[error("it is not a JWK set: an object with a list `keys`")]
    NoSet,
    /// A JWK set without a usable key.
    #[error("none of its keys can verify a signature with a supported algorithm")]
    NoKeys,
}

/// A key that signs tokens, with its one algorithm.
#[derive(Clone)]
pub struct TokenKey {
    id: Option<String>,
    algorithm: Algorithm,
    material: DecodingKey,
}

/// Hides the key, which may be a secret.
impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenKey({:?}, {:?}, ***)", self.id, self.algorithm)
    }
}

impl TokenKey {
    /// Returns a secret that is shared with the issuer.
    ///
    /// # Errors
    /// [`KeyFault::ShortSecret`].
    pub fn secret(secret: &[u8], algorithm: Algorithm) -> Result<TokenKey, KeyFault> {
        let least = algorithm.least_secret();
        if secret.len() < least {
            let found = secret.len();
            return Err(KeyFault::ShortSecret { found, least });
        }
        Ok(TokenKey {
            id: None,
            algorithm,
            material: DecodingKey::from_secret(secret),
        })
    }

    /// Parses a public key in PEM form.
    ///
    /// # Errors
    /// [`KeyFault::NoPublicKey`].
    pub fn public(pem: &[u8], algorithm: Algorithm) -> Result<TokenKey, KeyFault> {
        let material = match algorithm.kind() {
            KeyKind::Secret => return Err(KeyFault::NoPublicKey),
            KeyKind::Rsa => DecodingKey::from_rsa_pem(pem),
            KeyKind::P256 | KeyKind::P384 => DecodingKey::from_ec_pem(pem),
            KeyKind::Ed25519 => DecodingKey::from_ed_pem(pem),
        };
        let material = material.map_err(|_| KeyFault::NoPublicKey)?;
        // An uncompressed point is one byte and two coordinates.
        let length = material.try_get_as_bytes().map_or(0, <[u8]>::len);
        let fits = match algorithm.kind() {
            KeyKind::P256 => length == 65,
            KeyKind::P384 => length == 97,
            KeyKind::Secret | KeyKind::Rsa | KeyKind::Ed25519 => true,
        };
        if !fits {
            return Err(KeyFault::NoPublicKey);
        }
        Ok(TokenKey {
            id: None,
            algorithm,
            material,
        })
    }

    pub(super) fn may_sign(&self, algorithm: jsonwebtoken::Algorithm, id: Option<&str>) -> bool {
        let named = match (&self.id, id) {
            (Some(own), Some(id)) => own == id,
            (None, _) | (_, None) => true,
        };
        named && jsonwebtoken::Algorithm::from(self.algorithm) == algorithm
    }

    pub(super) const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) const fn material(&self) -> &DecodingKey {
        &self.material
    }
}

/// Parses the keys of a JWK set (RFC 7517). Encryption keys and keys of unknown algorithms are skipped, since issuers
/// publish them in the same set.
///
/// # Errors
/// [`KeyFault`].
pub fn key_set(text: &[u8]) -> Result<Vec<TokenKey>, KeyFault> {
    let document: Value = serde_json::from_slice(text).map_err(|_| KeyFault::NoSet)?;
    let keys = document.get("keys").and_then(Value::as_array);
    let keys = keys.ok_or(KeyFault::NoSet)?.iter();
    let keys: Vec<TokenKey> = keys.filter_map(of_set).collect();
    if keys.is_empty() {
        return Err(KeyFault::NoKeys);
    }
    Ok(keys)
}

fn of_set(key: &Value) -> Option<TokenKey> {
    let key: Jwk = serde_json::from_value(key.clone()).ok()?;
    if matches!(&key.common.public_key_use, Some(purpose) if *purpose != PublicKeyUse::Signature) {
        return None;
    }
    let kind = kind(&key.algorithm)?;
    let algorithm = match key.common.key_algorithm {
        Some(said) => stated(said)?,
        None => usual(kind)?,
    };
    if algorithm.kind() != kind {
        return None;
    }
    if let AlgorithmParameters::OctetKey(secret) = &key.algorithm {
        // Four base64 characters are three bytes.
        let length = secret.value.trim_end_matches('=').len() * 3 / 4;
        if length < algorithm.least_secret() {
            return None;
        }
    }
    Some(TokenKey {
        id: key.common.key_id.clone(),
        algorithm,
        material: DecodingKey::from_jwk(&key).ok()?,
    })
}

fn stated(algorithm: KeyAlgorithm) -> Option<Algorithm> {
    Algorithm::parse(serde_json::to_value(algorithm).ok()?.as_str()?)
}

fn kind(parameters: &AlgorithmParameters) -> Option<KeyKind> {
    let curve = if matches!(parameters, AlgorithmParameters::RSA(_)) {
        return Some(KeyKind::Rsa);
    } else if matches!(parameters, AlgorithmParameters::OctetKey(_)) {
        return Some(KeyKind::Secret);
    } else if let AlgorithmParameters::EllipticCurve(key) = parameters {
        &key.curve
    } else if let AlgorithmParameters::OctetKeyPair(key) = parameters {
        &key.curve
    } else {
        return None;
    };
    if *curve == EllipticCurve::P256 {
        Some(KeyKind::P256)
    } else if *curve == EllipticCurve::P384 {
        Some(KeyKind::P384)
    } else if *curve == EllipticCurve::Ed25519 {
        Some(KeyKind::Ed25519)
    } else {
        None
    }
}

/// Returns the algorithm of a key that names none: the only one of a curve, or the usual one for RSA.
const fn usual(kind: KeyKind) -> Option<Algorithm> {
    match kind {
        KeyKind::Secret => None,
        KeyKind::Rsa => Some(Algorithm::Rs256),
        KeyKind::P256 => Some(Algorithm::Es256),
        KeyKind::P384 => Some(Algorithm::Es384),
        KeyKind::Ed25519 => Some(Algorithm::EdDsa),
    }
}
