use http::HeaderValue;
use jsonwebtoken::{EncodingKey, Header, encode};
use proptest::prelude::*;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256};
use serde_json::json;

use super::*;
use crate::rollout::Glob;

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const NOW: u64 = 1_800_000_000;

fn tokens(keys: Vec<TokenKey>) -> Tokens {
    Tokens {
        keys,
        issuer: Some("https://issuer.example".to_owned()),
        audience: vec!["api".to_owned(), "app".to_owned()],
        leeway_seconds: 60,
    }
}

fn with_secret() -> Tokens {
    tokens(vec![TokenKey::secret(SECRET, Algorithm::Hs256).unwrap()])
}

fn good() -> Value {
    json!({ "iss": "https://issuer.example", "aud": "api", "exp": NOW + 600, "sub": "ada" })
}

fn signed(claims: &Value) -> String {
    let header = Header::new(jsonwebtoken::Algorithm::HS256);
    encode(&header, claims, &EncodingKey::from_secret(SECRET)).unwrap()
}

fn base64(text: &str) -> String {
    // A signed token is where this crate's encoding is at hand: its second part is the payload.
    let token = signed(&serde_json::from_str(text).unwrap());
    token.split('.').nth(1).unwrap().to_owned()
}

#[test]
fn claims_hold_for_their_time_their_issuer_and_their_audience() {
    let rows = [
        (json!({}), Ok(())),
        (json!({ "exp": NOW - 59 }), Ok(())),
        (json!({ "exp": NOW - 60 }), Err(TokenFault::Expired)),
        (json!({ "exp": 1.5 }), Err(TokenFault::Expired)),
        (json!({ "exp": null }), Err(TokenFault::NoExpiry)),
        (json!({ "exp": "2099" }), Err(TokenFault::NoExpiry)),
        (json!({ "nbf": NOW + 60 }), Ok(())),
        (json!({ "nbf": NOW + 61 }), Err(TokenFault::NotYet)),
        (json!({ "nbf": "now" }), Err(TokenFault::NotYet)),
        (
            json!({ "iss": "https://issuer.example/" }),
            Err(TokenFault::Issuer),
        ),
        (json!({ "iss": null }), Err(TokenFault::Issuer)),
        (json!({ "aud": ["x", "app"] }), Ok(())),
        (json!({ "aud": ["x"] }), Err(TokenFault::Audience)),
        (json!({ "aud": null }), Err(TokenFault::Audience)),
    ];
    for (change, result) in rows {
        let mut claims = good();
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let verified = with_secret().verify(&signed(&claims), NOW).map(|_| ());
        assert_eq!(verified, result, "{claims}");
    }
}

/// A fresh key pair, as PEM: private, public.
fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, String) {
    let pair = KeyPair::generate_for(algorithm).unwrap();
    (pair.serialize_pem(), pair.public_key_pem())
}

#[test]
fn each_kind_of_key_verifies_what_it_has_signed_and_nothing_else() {
    let (rsa, rsa_public) = pair(&PKCS_RSA_SHA256);
    let (ec, ec_public) = pair(&PKCS_ECDSA_P256_SHA256);
    let (ed, ed_public) = pair(&PKCS_ED25519);
    let (_, other) = pair(&PKCS_ED25519);
    let sign =
        |algorithm, key: EncodingKey| encode(&Header::new(algorithm), &good(), &key).unwrap();
    let by_rsa = sign(
        jsonwebtoken::Algorithm::RS256,
        EncodingKey::from_rsa_pem(rsa.as_bytes()).unwrap(),
    );
    let by_ec = sign(
        jsonwebtoken::Algorithm::ES256,
        EncodingKey::from_ec_pem(ec.as_bytes()).unwrap(),
    );
    let by_ed = sign(
        jsonwebtoken::Algorithm::EdDSA,
        EncodingKey::from_ed_pem(ed.as_bytes()).unwrap(),
    );
    let with =
        |pem: &str, algorithm| tokens(vec![TokenKey::public(pem.as_bytes(), algorithm).unwrap()]);
    for (token, own, algorithm) in [
        (&by_rsa, &rsa_public, Algorithm::Rs256),
        (&by_ec, &ec_public, Algorithm::Es256),
        (&by_ed, &ed_public, Algorithm::EdDsa),
    ] {
        assert!(
            with(own, algorithm).verify(token, NOW).is_ok(),
            "{algorithm:?}"
        );
        for foreign in [&by_rsa, &by_ec, &by_ed]
            .into_iter()
            .filter(|foreign| *foreign != token)
        {
            let fault = with(own, algorithm).verify(foreign, NOW).unwrap_err();
            assert_eq!(fault, TokenFault::NoKey, "{algorithm:?}");
        }
    }
    // The algorithm belongs to the key, even where both are of one family.
    assert_eq!(
        with(&rsa_public, Algorithm::Ps256).signed(&by_rsa),
        Err(TokenFault::NoKey)
    );
    assert_eq!(
        with(&other, Algorithm::EdDsa).signed(&by_ed),
        Err(TokenFault::Signature)
    );
    // A public key in the place of a secret: whoever knows it could sign.
    let confused = sign(
        jsonwebtoken::Algorithm::HS256,
        EncodingKey::from_secret(rsa_public.as_bytes()),
    );
    assert_eq!(
        with(&rsa_public, Algorithm::Rs256).signed(&confused),
        Err(TokenFault::NoKey)
    );
}

#[test]
fn what_is_no_signed_token_proves_nothing() {
    let payload = base64(&good().to_string());
    let header = |text: &str| base64(text);
    let none = header(r#"{"alg":"none","typ":"JWT"}"#);
    let critical = header(r#"{"alg":"HS256","crit":["exp"]}"#);
    let signature = signed(&good()).rsplit('.').next().unwrap().to_owned();
    let whole = header(r#"{"alg":"HS256"}"#);
    for (token, fault) in [
        (format!("{none}.{payload}."), TokenFault::Malformed),
        (
            format!("{none}.{payload}.{signature}"),
            TokenFault::Malformed,
        ),
        (
            format!("{critical}.{payload}.{signature}"),
            TokenFault::Malformed,
        ),
        (format!("{whole}.{payload}."), TokenFault::Signature),
        (
            format!("{whole}.{payload}.{signature}"),
            TokenFault::Signature,
        ),
        ("opaque".to_owned(), TokenFault::Malformed),
        ("..".to_owned(), TokenFault::Malformed),
        ("x".repeat(9000), TokenFault::TooLong),
    ] {
        assert_eq!(with_secret().verify(&token, NOW), Err(fault), "{token}");
    }
}

#[test]
fn a_set_of_keys_is_read_key_by_key() {
    let octets = |secret: &[u8]| {
        use jsonwebtoken::jwk::Jwk;
        let key = EncodingKey::from_secret(secret);
        let key = Jwk::from_encoding_key(&key, jsonwebtoken::Algorithm::HS256).unwrap();
        serde_json::to_value(key).unwrap()
    };
    let named = |mut key: Value, name: &str| {
        key["kid"] = json!(name);
        key
    };
    let other = b"fedcba9876543210fedcba9876543210";
    let mut encrypts = octets(SECRET);
    encrypts["use"] = json!("enc");
    let set = |keys: Vec<Value>| key_set(json!({ "keys": keys }).to_string().as_bytes());
    let both = set(vec![
        json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "x" }),
        named(octets(other), "one"),
        named(octets(SECRET), "two"),
    ]);
    let both = tokens(both.unwrap());
    assert!(both.verify(&signed(&good()), NOW).is_ok());
    let mut header = Header::new(jsonwebtoken::Algorithm::HS256);
    for (id, result) in [
        ("two", Ok(())),
        ("one", Err(TokenFault::Signature)),
        ("three", Err(TokenFault::NoKey)),
    ] {
        header.kid = Some(id.to_owned());
        let token = encode(&header, &good(), &EncodingKey::from_secret(SECRET)).unwrap();
        assert_eq!(both.verify(&token, NOW).map(|_| ()), result, "{id}");
    }
    assert_eq!(set(vec![encrypts]).unwrap_err(), KeyFault::NoKeys);
    assert_eq!(set(vec![octets(b"short")]).unwrap_err(), KeyFault::NoKeys);
    assert_eq!(key_set(b"[]").unwrap_err(), KeyFault::NoSet);
    let short = TokenKey::secret(b"short", Algorithm::Hs256).unwrap_err();
    assert_eq!(
        short.to_string(),
        "the secret has 5 bytes; its algorithm needs at least 32"
    );
}

#[test]
fn a_key_of_another_kind_is_refused_when_it_is_read() {
    let (_, ec) = pair(&PKCS_ECDSA_P256_SHA256);
    for algorithm in [
        Algorithm::Rs256,
        Algorithm::Es384,
        Algorithm::EdDsa,
        Algorithm::Hs256,
    ] {
        let fault = TokenKey::public(ec.as_bytes(), algorithm).unwrap_err();
        assert_eq!(fault, KeyFault::NoPublicKey, "{algorithm:?}");
    }
    let fault = TokenKey::public(b"no key", Algorithm::Es256).unwrap_err();
    assert_eq!(fault, KeyFault::NoPublicKey);
}

#[test]
fn a_claim_is_found_by_its_name_or_by_the_names_on_the_way() {
    let claims = json!({
        "sub": "ada", "level": 7, "on": true, "empty": "", "roles": ["reader", "writer"],
        "realm": { "role": "admin" }, "https://x.example/tenant": "t1", "a.b": "flat", "a": { "b": "nested" },
    });
    let claims = Claims::new(claims.as_object().unwrap().clone());
    for (path, glob, fits) in [
        ("sub", "a*", true),
        ("sub", "b*", false),
        ("level", "7", true),
        ("on", "true", true),
        ("roles", "writ*", true),
        ("roles", "owner", false),
        ("realm.role", "admin", true),
        ("realm", "*", false),
        ("https://x.example/tenant", "t1", true),
        ("a.b", "flat", true),
        ("gone", "*", false),
    ] {
        assert_eq!(
            ClaimPath::new(path).fits(&claims, &Glob::new(glob)),
            fits,
            "{path} {glob}"
        );
    }
    let text = |path: &str| ClaimPath::new(path).text(&claims);
    assert_eq!(text("realm.role").as_deref(), Some("admin"));
    assert_eq!(text("level").as_deref(), Some("7"));
    assert_eq!(
        (text("roles"), text("empty"), text("gone")),
        (None, None, None)
    );
    assert_eq!(format!("{claims:?}"), "Claims(***)");
}

#[test]
fn only_a_single_bearer_credential_is_a_token() {
    let of = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        bearer(&headers).map(str::to_owned)
    };
    assert_eq!(of(&["Bearer a.b.c"]).as_deref(), Some("a.b.c"));
    assert_eq!(of(&["bearer  a.b.c "]).as_deref(), Some("a.b.c"));
    for none in [
        &["Basic eA=="][..],
        &["Bearer"],
        &["Bearer "],
        &["Bearer a", "Bearer b"],
        &[],
    ] {
        assert_eq!(of(none), None, "{none:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_token_that_was_changed_proves_nothing(at in any::<prop::sample::Index>(), to in "[A-Za-z0-9_.-]") {
        let token = signed(&good());
        let at = at.index(token.len());
        let changed = format!("{}{to}{}", &token[..at], &token[at + 1..]);
        // The last character of a part has bits that no byte takes; the library refuses those as well.
        prop_assert_eq!(with_secret().verify(&changed, NOW).is_ok(), changed == token);
    }

    #[test]
    fn no_text_makes_verifying_panic(token in "\\PC{0,40}|[a-zA-Z0-9_-]{0,20}\\.[a-zA-Z0-9_-]{0,20}\\.[a-zA-Z0-9_-]{0,20}") {
        prop_assert!(with_secret().verify(&token, NOW).is_err());
    }
}
