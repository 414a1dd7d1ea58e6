//! The laws of the notation of patterns for any bytes. Used for fuzzing, and by the test that runs its corpus.

use bytes::Bytes;

use super::{
    Bindings, BoundValue, Codec, HoleFacts, HolePosition, HoleRef, HoleResolver, Pattern,
    PatternError, PatternReader, PatternWriter, SourceTree, TextPatterns, Token, UnknownMembers,
    WriteScope, parse_encoded_type, parse_mention, sample, tokens, words_intersection,
};
use crate::json::{Json, JsonKind};
use crate::side::Side;

/// The maximum depth of a pattern in JSON.
const DEPTH: u16 = 32;

/// Reads any bytes as a text with holes and as a pattern in JSON, and checks that
///
/// - splitting a text into holes loses nothing,
/// - the notation of a value map, of key styles and of a page is read as the same,
/// - a refusal says why,
/// - a written value is read as the same values.
///
/// # Panics
/// If a law does not hold.
pub fn check_any_notation(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    check_holes(text);
    match TextPatterns::parse(text) {
        Ok(mentioned) => check_words(&mentioned),
        Err(error) => assert!(!error.what.is_empty()),
    }
    check_pattern(&SourceTree::Text(text.to_owned()));
    let parsed = Json::parse(Bytes::copy_from_slice(data), DEPTH);
    if let Some(tree) = parsed.ok().and_then(|json| tree(&json)) {
        check_pattern(&tree);
    }
}

fn check_holes(text: &str) {
    let Ok(found) = tokens(text) else { return };
    let spelled = found.iter().map(|token| match token {
        Token::Text(text) => text.replace('{', "{{").replace('}', "}}"),
        Token::Hole(inside) => format!("{{{inside}}}"),
    });
    let spelled: String = spelled.collect();
    assert_eq!(tokens(&spelled).as_ref(), Ok(&found), "{spelled}");
    for token in &found {
        let Token::Hole(inside) = token else { continue };
        let mention = match parse_mention(inside) {
            Ok(mention) => mention,
            Err(error) => {
                assert!(!error.what.is_empty());
                continue;
            }
        };
        let notation = match &mention.codec {
            Codec::Plain | Codec::Json(_) | Codec::Percent => continue,
            Codec::Map(map) => map.to_notation(),
            Codec::Keys(styles) => styles.to_notation(),
            Codec::Page(page) => page.to_notation(),
        };
        let again = parse_encoded_type(&format!(":{notation}"), inside);
        let codec = again.map(|(_, codec)| codec);
        assert_eq!(codec.as_ref(), Ok(&mention.codec), "{notation}");
    }
}

/// Checks a text that is the same on both sides.
fn check_words(mentioned: &TextPatterns<HoleRef>) {
    let understood = || -> Result<(HoleFacts, TextPatterns), PatternError> {
        let mut resolver = HoleResolver::default();
        resolver.words(Side::Rest, mentioned, HolePosition::Words)?;
        resolver.words(Side::Rpc, mentioned, HolePosition::Words)?;
        let facts = resolver.finish(&HoleFacts::default())?;
        let words = facts.words(Side::Rest, mentioned, HolePosition::Words)?;
        Ok((facts, words))
    };
    let (facts, words) = match understood() {
        Ok(understood) => understood,
        Err(error) => return assert!(!error.what.is_empty()),
    };
    let Some(texts) = words_intersection(&words, &words) else {
        return;
    };
    let read = |texts: &[&str]| {
        let mut reading = reader(&facts);
        words.read(texts, &mut reading).ok()?;
        reading.settle().ok()?;
        Some(reading.bindings)
    };
    let Some(bindings) = read(&Vec::from_iter(texts.iter().map(String::as_str))) else {
        return;
    };
    // An empty list has no text of its own, and may come back as a default. `check` reports that.
    let is_empty_list =
        |bound: &BoundValue| matches!(bound, BoundValue::Value(list) if list.as_bytes() == b"[]");
    if (0..facts.holes.len()).any(|hole| is_empty_list(bindings.get(hole))) {
        return;
    }
    let Ok(written) = words.write(&writer(&bindings)) else {
        return;
    };
    let written = Vec::from_iter(written);
    let again = read(&Vec::from_iter(written.iter().map(|text| &**text)));
    check_same(&facts, &bindings, again.as_ref(), &format!("{written:?}"));
}

/// Checks a pattern that is the same on both sides.
fn check_pattern(tree: &SourceTree) {
    let understood = || -> Result<(HoleFacts, Pattern), PatternError> {
        let mentioned = tree.pattern()?;
        let mut resolver = HoleResolver::default();
        resolver.pattern(Side::Rest, &mentioned)?;
        resolver.pattern(Side::Rpc, &mentioned)?;
        let facts = resolver.finish(&HoleFacts::default())?;
        let pattern = facts.resolve(Side::Rest, &mentioned)?;
        Ok((facts, pattern))
    };
    let (facts, pattern) = match understood() {
        Ok(understood) => understood,
        Err(error) => return assert!(!error.what.is_empty()),
    };
    let read = |value: &Json| {
        let mut reading = reader(&facts);
        pattern.read(Some(value), &mut reading).ok()?;
        reading.settle().ok()?;
        Some(reading.bindings)
    };
    let Some(bindings) = read(&sample(&pattern)) else {
        return;
    };
    let Ok(Some(written)) = pattern.pieces(&writer(&bindings), 64) else {
        return;
    };
    let written = Json::sent(written);
    let shown = String::from_utf8_lossy(written.as_bytes());
    check_same(&facts, &bindings, read(&written).as_ref(), &shown);
}

fn check_same(facts: &HoleFacts, bindings: &Bindings, again: Option<&Bindings>, written: &str) {
    assert!(again.is_some(), "{written} was written, but is not read");
    let Some(again) = again else { return };
    for (hole, fact) in facts.holes.iter().enumerate() {
        let is_same = bindings.get(hole).same(again.get(hole));
        assert!(is_same, "`{}` changes in {written}", fact.name);
    }
}

fn reader(facts: &HoleFacts) -> PatternReader {
    PatternReader::new(facts.holes.len(), UnknownMembers::Refused, DEPTH)
}

fn writer(bindings: &Bindings) -> PatternWriter<'_> {
    PatternWriter::new(WriteScope {
        bindings,
        call: None,
        now: String::new,
    })
}

/// Returns the value as a route table has it. A route table has no `null`.
fn tree(json: &Json) -> Option<SourceTree> {
    Some(match json.kind() {
        JsonKind::Null => return None,
        JsonKind::Boolean | JsonKind::Number => SourceTree::Literal(json.clone()),
        JsonKind::String => SourceTree::Text(json.text()?.ok()?),
        JsonKind::Array => {
            let items = json.elements().map(|range| tree(&json.piece(range)));
            SourceTree::List(items.collect::<Option<_>>()?)
        }
        JsonKind::Object => {
            let members = json.open().ok()?.into_iter().map(|member| {
                let value = tree(&json.piece(member.value))?;
                Some((member.name.into_owned(), value))
            });
            SourceTree::Table(members.collect::<Option<_>>()?)
        }
    })
}
