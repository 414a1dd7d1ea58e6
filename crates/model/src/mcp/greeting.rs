//! The response of a server to `initialize`. Used by `pending` and `upstream`.

use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::local_reply::HANDSHAKES;
use crate::redact::Redaction;

/// Maximum length of the server's error message in messages.
const SHOWN_ERROR: usize = 200;

/// Returns the server's error in response to `initialize`, as a message without secrets.
#[must_use]
pub fn initialize_error(error: &ErrorObject) -> String {
    let text = error.message.text().and_then(Result::ok);
    let text: String = text.unwrap_or_default().chars().take(SHOWN_ERROR).collect();
    let separator = if text.is_empty() { "" } else { ": " };
    format!(
        "it answered `initialize` with the error {}{separator}{}",
        error.code,
        Redaction::default().text(&text).escape_debug()
    )
}

/// Returns the revision in the response to `initialize`.
///
/// # Errors
/// A message, if the revision is unknown.
pub fn agreed_revision(answer: &ResponseReply) -> Result<&'static str, String> {
    let result = match answer {
        ResponseReply::Result(result) => result,
        ResponseReply::Error(error) => return Err(initialize_error(error)),
    };
    let version = result.member("protocolVersion");
    let version = version
        .and_then(|version| version.text()?.ok())
        .unwrap_or_default();
    let known = HANDSHAKES.iter().find(|known| **known == version);
    known
        .copied()
        .ok_or_else(|| format!("it uses the unknown revision `{}`", version.escape_debug()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::parse_response;

    #[test]
    fn an_unknown_revision_is_rejected() {
        let agreed = |text: &str| {
            let answer = parse_response(&text.to_owned().into(), 16).unwrap();
            agreed_revision(&answer.reply)
        };
        assert_eq!(
            agreed(r#"{"id":1,"result":{"protocolVersion":"2024-11-05"}}"#),
            Ok("2024-11-05")
        );
        for text in [
            r#"{"id":1,"result":{"protocolVersion":"2026-07-28"}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":1,"error":{"code":-32602,"message":""}}"#,
        ] {
            assert!(agreed(text).is_err(), "{text}");
        }
        let long = "x".repeat(300);
        let shown = format!("-32000: {}", &long[..200]);
        for (message, shown) in [
            ("", "the error -32000"),
            ("no\\nway", "-32000: no\\nway"),
            ("token=s3cr3t", "-32000: token="),
            (&long, &shown),
        ] {
            let text = format!(r#"{{"id":1,"error":{{"code":-32000,"message":"{message}"}}}}"#);
            let why = agreed(&text).unwrap_err();
            let ends = message.is_empty() || message.len() > 200;
            assert!(why.contains(shown) && !why.contains("s3cr3t"), "{why}");
            assert!(!ends || why.ends_with(shown), "{why}");
        }
    }
}
