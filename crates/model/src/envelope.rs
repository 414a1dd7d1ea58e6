//! Credentials in JSON-RPC envelopes: members that some servers take in place of HTTP headers.
//!
//! They are never logged, and go only to an upstream that names them and gets credentials at all. Law: converting a
//! value to a header and back gives the same value.
//!
//! Used by `config`, `headers`, `plan` and `rejections`.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::route::{HeaderItem, MatchError, read_headers, write_headers};
use dualgauge_patterns::json::{Json, JsonKind, same_ignoring_case};
use dualgauge_patterns::pattern::{
    HoleFacts, HolePosition, HoleResolver, PatternError, PatternReader, PatternWriter, Slot,
    TextPatterns, UnknownMembers, WriteScope,
};
use dualgauge_patterns::side::Side;

/// A member and its header: `auth = { header = "authorization", value = "Bearer {token}" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvelopeHeader {
    /// The name of the member.
    pub member: String,
    item: HeaderItem,
    slot: Slot,
}

/// The members of JSON-RPC itself (JSON-RPC 2.0 §4).
const OWN: [&str; 4] = ["jsonrpc", "id", "method", "params"];

impl EnvelopeHeader {
    /// Compiles one pair; `value` is the text of the header, with one hole for the value of the member.
    ///
    /// # Errors
    /// [`PatternError`] with the faulty key.
    pub fn parse(
        member: &str,
        header: HeaderName,
        value: &str,
    ) -> Result<EnvelopeHeader, PatternError> {
        if OWN.iter().any(|own| own.eq_ignore_ascii_case(member)) {
            return Err(PatternError::new(format!(
                "`{member}` is a member of JSON-RPC itself"
            )));
        }
        let under = |error: PatternError| error.under("value");
        let words = TextPatterns::parse(value).map_err(under)?;
        let mentions = words.mentions();
        let [mention] = mentions[..] else {
            let what = "it needs one hole for the value of the member, such as `{token}`";
            return Err(under(PatternError::new(what)));
        };
        let mut resolver = HoleResolver::default();
        resolver
            .words(Side::Rest, &words, HolePosition::Words)
            .map_err(under)?;
        let bare = dualgauge_patterns::pattern::mention_named(
            &mention.name,
            dualgauge_patterns::pattern::HoleUse::Both,
            None,
        );
        resolver
            .mention(Side::Rpc, &bare, HolePosition::Json, 0)
            .map_err(under)?;
        let facts = resolver.finish(&HoleFacts::default()).map_err(under)?;
        Ok(EnvelopeHeader {
            member: member.to_owned(),
            item: HeaderItem {
                name: header,
                words: facts
                    .words(Side::Rest, &words, HolePosition::Words)
                    .map_err(under)?,
            },
            slot: facts
                .slot(Side::Rpc, &bare, HolePosition::Json, 0)
                .map_err(under)?,
        })
    }

    /// Returns the header name.
    #[must_use]
    pub fn header(&self) -> &HeaderName {
        &self.item.name
    }

    /// Returns the member's value according to the client's headers; `None` if they do not have this form.
    #[must_use]
    pub fn from_headers(&self, headers: &HeaderMap, depth: u16) -> Option<Json> {
        let mut reading = PatternReader::new(1, UnknownMembers::Open, depth);
        read_headers(std::slice::from_ref(&self.item), headers, &mut reading).ok()?;
        let value = self.slot.write_json(reading.bindings.get(0)).ok()?;
        value.map(Cow::into_owned)
    }

    /// Returns the header for a member's value; `None` for `null`.
    ///
    /// # Errors
    /// [`MatchError`] names the member and the fault of its value, but never the value.
    pub fn to_header(
        &self,
        value: &Json,
        depth: u16,
    ) -> Result<Option<(HeaderName, HeaderValue)>, MatchError> {
        if value.kind() == JsonKind::Null {
            return Ok(None);
        }
        let wrong = |_| MatchError::new(&*self.member, "its value is not valid in its header");
        let bound = self.slot.read_json(Some(value), depth).map_err(|_| ());
        let mut reading = PatternReader::new(1, UnknownMembers::Open, depth);
        reading.bindings.set(0, bound.map_err(wrong)?);
        let writing = PatternWriter::new(WriteScope {
            bindings: &reading.bindings,
            call: None,
            now: String::new,
        });
        let written = write_headers(std::slice::from_ref(&self.item), &writing);
        let mut pair = written.map_err(|_| ()).map_err(wrong)?.pop();
        if let Some((_, value)) = &mut pair {
            value.set_sensitive(true);
        }
        Ok(pair)
    }
}

/// Rejects a message in which two programs could find two credentials.
///
/// # Errors
/// [`MatchError`] names the member that is repeated, or written in another letter case.
pub fn unambiguous(envelope: &[EnvelopeHeader], message: &Json) -> Result<(), MatchError> {
    if envelope.is_empty() {
        return Ok(());
    }
    let members = message.open()?;
    let twin = members.iter().find_map(|member| {
        let like = |paired: &&EnvelopeHeader| {
            paired.member != member.name && same_ignoring_case(&paired.member, &member.name)
        };
        Some((member, envelope.iter().find(like)?))
    });
    match twin {
        None => Ok(()),
        Some((member, paired)) => Err(MatchError::new(
            &*member.name,
            format!("it differs from `{}` only in letter case", paired.member),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(value: &str) -> EnvelopeHeader {
        EnvelopeHeader::parse("auth", HeaderName::from_static("authorization"), value).unwrap()
    }

    fn headers(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            HeaderName::from_static("authorization"),
            HeaderValue::from_static(value),
        )])
    }

    #[test]
    fn a_member_becomes_its_header_and_comes_back() {
        for (pattern, member, header) in [
            ("{token}", r#""Bearer x""#, "Bearer x"),
            ("Bearer {token}", r#""x""#, "Bearer x"),
            ("{map:json}", r#"{"a":[1.10]}"#, r#"{"a":[1.10]}"#),
        ] {
            let paired = paired(pattern);
            let value = Json::parse(member.into(), 16).unwrap();
            let (name, written) = paired.to_header(&value, 16).unwrap().unwrap();
            assert_eq!(
                (name.as_str(), written.to_str().unwrap()),
                ("authorization", header)
            );
            assert!(written.is_sensitive());
            let back = paired.from_headers(&headers(header), 16).unwrap();
            assert_eq!(back, value);
        }
    }

    #[test]
    fn other_forms_are_not_values() {
        assert_eq!(
            paired("Bearer {token}").from_headers(&headers("Basic x"), 16),
            None
        );
        assert_eq!(paired("{token}").from_headers(&HeaderMap::new(), 16), None);
        let null = Json::literal("null");
        assert_eq!(paired("{token}").to_header(&null, 16).unwrap(), None);
        let wrong = paired("{token}")
            .to_header(&Json::literal("7"), 16)
            .unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "auth: its value is not valid in its header"
        );
        let broken = Json::string("a\nb");
        assert!(paired("{token}").to_header(&broken, 16).is_err());
    }

    #[test]
    fn a_message_has_each_credential_once_in_any_letter_case() {
        let envelope = [paired("{token}")];
        for (message, words) in [
            (
                r#"{"auth":"a","auth":"b"}"#,
                "member `auth`: it is given twice",
            ),
            (r#"{"auth":"a","AUTH":"b"}"#, "only in letter case"),
            (
                r#"{"Auth":"b"}"#,
                "it differs from `auth` only in letter case",
            ),
        ] {
            let message = Json::parse(message.into(), 16).unwrap();
            let error = unambiguous(&envelope, &message).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
        let fine = Json::parse(r#"{"auth":"a","id":1}"#.into(), 16).unwrap();
        assert_eq!(unambiguous(&envelope, &fine), Ok(()));
    }

    #[test]
    fn a_pair_has_one_hole_and_a_distinct_name() {
        let header = || HeaderName::from_static("authorization");
        for (member, value, words) in [
            ("id", "{token}", "a member of JSON-RPC itself"),
            ("auth", "x", "one hole"),
            ("auth", "{a}-{b}", "one hole"),
            ("auth", "{a", "no closing brace"),
        ] {
            let error = EnvelopeHeader::parse(member, header(), value).unwrap_err();
            assert!(error.what.contains(words), "{error:?}");
        }
    }
}
