use bytes::Bytes;
use proptest::prelude::*;

use super::*;

mod opened;

fn parse(text: &[u8]) -> Result<Json, JsonFault> {
    Json::parse(Bytes::copy_from_slice(text), 128)
}

#[test]
fn the_json_test_suite_is_classified() {
    let suite = include_str!("../../tests/data/jsontestsuite.json");
    let suite: serde_json::Value = serde_json::from_str(suite).unwrap();
    let mut seen = 0;
    for (name, text) in suite["files"].as_object().unwrap() {
        let bytes: Vec<u8> = text
            .as_str()
            .unwrap()
            .as_bytes()
            .chunks(2)
            .map(hex)
            .collect();
        // Two files of 100,000 brackets are refused for their depth before anything else.
        let verdict = parse(&bytes);
        match name.as_bytes()[0] {
            b'y' => assert!(verdict.is_ok(), "{name}: {verdict:?}"),
            b'n' => assert!(verdict.is_err(), "{name} was accepted"),
            _ => assert_eq!(verdict.is_ok(), lenient(&bytes), "{name}"),
        }
        seen += 1;
    }
    assert!(seen > 300, "only {seen} files");
}

fn hex(pair: &[u8]) -> u8 {
    u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()
}

/// The implementation-defined files: the grammar decides, not the meaning of a value.
fn lenient(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
        && !bytes.starts_with(b"\xEF\xBB\xBF")
        && bytes.iter().filter(|byte| **byte == b'[').count() <= 128
}

#[test]
fn a_fault_names_the_byte_and_what_was_expected() {
    let rows: &[(&[u8], &str)] = &[
        (b"  ", "there is no JSON value: the text is empty"),
        (b"{\"a\" 1}", "byte 5: expected `:` after a member name"),
        (b"[1 2]", "byte 3: expected `,` or `]` after an element"),
        (b"{\"a\":1,}", "byte 7: expected a member name in quotes"),
        (b"01", "byte 1: text after the JSON value"),
        (b"\"\\x\"", "byte 1: an escape that JSON does not have"),
        (
            b"\"a\nb\"",
            "byte 2: a control character in a string must be escaped",
        ),
        (b"{\"a\":", "byte 5: the text ends inside a value"),
        (b"\"\xff\"", "byte 1: not valid UTF-8"),
        (
            b"\xEF\xBB\xBF{}",
            "byte 0: a byte order mark; send the JSON text without it",
        ),
    ];
    for (text, words) in rows {
        assert_eq!(parse(text).unwrap_err().to_string(), *words);
    }
}

#[test]
fn nesting_beyond_the_limit_is_refused_and_the_limit_itself_is_not() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    assert!(parse(&nested(128)).is_ok());
    assert_eq!(
        parse(&nested(129)).unwrap_err().kind,
        FaultKind::TooDeep(128)
    );
    assert_eq!(
        parse(&vec![b'['; 10_000]).unwrap_err().kind,
        FaultKind::TooDeep(128)
    );
}

#[test]
fn integers_and_numbers_are_distinguished_by_their_text() {
    for yes in ["0", "-7", "123456789012345678901234567890"] {
        assert!(is_integer(yes.as_bytes()), "{yes}");
    }
    for no in ["1.0", "1e3", "+1", "007", "", "-", "0x1", " 1", "NaN"] {
        assert!(!is_integer(no.as_bytes()), "{no}");
    }
    assert!(
        is_number(b"1.10") && is_number(b"-1e400") && !is_number(b"1.") && !is_number(b"Infinity")
    );
}

#[test]
fn names_that_lenient_parsers_confuse_are_the_same() {
    assert!(same_ignoring_case("ID", "id"));
    assert!(same_ignoring_case("\u{212a}ey", "key"));
    assert!(same_ignoring_case("Straſe", "STRASE"));
    assert!(!same_ignoring_case("id", "ids"));
}

/// Returns the fault of a text that begins with a quote.
fn byte_by_byte(text: &[u8]) -> Result<(), JsonFault> {
    let fault = |at, kind| Err(JsonFault { at, kind });
    let mut at = 1;
    loop {
        match text.get(at) {
            None => return fault(at, FaultKind::Unfinished),
            Some(b'"') => break,
            Some(0..0x20) => return fault(at, FaultKind::ControlCharacter),
            Some(b'\\') => match text.get(at + 1) {
                Some(b'u') => {
                    let digits = text.get(at + 2..at + 6).unwrap_or_default();
                    if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                        return fault(at, FaultKind::BadEscape);
                    }
                    at += 6;
                }
                Some(letter) if br#""\/bfnrt"#.contains(letter) => at += 2,
                _ => return fault(at, FaultKind::BadEscape),
            },
            Some(_) => at += 1,
        }
    }
    let white = |byte: &&u8| b" \n\r\t".contains(byte);
    let end = at + 1 + text[at + 1..].iter().take_while(white).count();
    if end < text.len() {
        return fault(end, FaultKind::TrailingText);
    }
    Ok(())
}

#[test]
fn a_string_that_breaks_off_is_judged_as_byte_by_byte() {
    let before = ["", "\u{1}", "\\n", "\\\"", "é", "\\x", "é\u{1}\\n"];
    let ends = [
        "",
        "\\",
        "\\\\",
        "\\u12",
        "\u{1}",
        "\\x\"",
        "\"",
        "\" \n",
        "\\\u{1}\"",
    ];
    for length in 0..200 {
        for (before, end) in before.iter().flat_map(|one| ends.map(|end| (one, end))) {
            let text = format!("\"{before}{}{end}", "a".repeat(length));
            let judged = parse(text.as_bytes()).map(drop);
            assert_eq!(judged, byte_by_byte(text.as_bytes()), "{text:?}");
        }
    }
}

proptest! {
    #[test]
    fn text_is_accepted_exactly_when_serde_accepts_it(text in r#"[\[\]{}",:\\ truefalsn0-9eE.+u-]{0,24}"#) {
        // `IgnoredAny` checks the grammar alone; serde's own limit of 128 levels is out of reach here.
        let expected = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(parse(text.as_bytes()).is_ok(), expected, "{}", text);
    }

    #[test]
    fn text_that_is_not_utf8_is_refused_for_that(
        text in "[ ]?[{\\[\"]{0,2}[aé€😀\\[\"\\\\]{0,30}|\"[aé€😀]{0,30}\"", index in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = text.into_bytes();
        if !bytes.is_empty() {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let serde = serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok();
        match std::str::from_utf8(&bytes) {
            Ok(_) => prop_assert_eq!(parse(&bytes).is_ok(), serde),
            Err(error) => {
                let expected = JsonFault { at: error.valid_up_to(), kind: FaultKind::NotUtf8 };
                prop_assert_eq!(parse(&bytes), Err(expected));
            }
        }
    }

    #[test]
    fn long_strings_are_judged_as_byte_by_byte(
        inner in proptest::collection::vec(
            prop_oneof![
                8 => "[a-z é]{0,70}",
                8 => r#"\\["\\/bfnrt]"#,
                4 => r"\\u[0-9a-fA-F]{4}",
                1 => r#"\\?[\x00-\x7f]|\\u[0-9a-g]{4}|\\+"#,
            ],
            0..24,
        ),
        other in proptest::option::weighted(0.3, (any::<prop::sample::Index>(), 0x80..=0xFF_u8)),
    ) {
        let mut text = format!("\"{}\"", inner.concat()).into_bytes();
        if let Some((index, byte)) = other {
            let at = index.index(text.len());
            text[at] = byte;
        }
        let judged = parse(&text).map(|_| ());
        let expected = match std::str::from_utf8(&text) {
            Ok(valid) => {
                let serde = serde_json::from_str::<serde::de::IgnoredAny>(valid).is_ok();
                prop_assert_eq!(judged.is_ok(), serde, "{}", valid);
                byte_by_byte(&text)
            }
            Err(error) => Err(JsonFault { at: error.valid_up_to(), kind: FaultKind::NotUtf8 }),
        };
        prop_assert_eq!(judged, expected, "{}", text.escape_ascii());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn decode_undoes_encode(text in prop_oneof![any::<String>(), "([\\x00-\\x7f]|[a-zé]{1,70}){0,12}"]) {
        let json = Json::string(&text);
        prop_assert_eq!(serde_json::from_slice::<String>(json.as_bytes()).unwrap(), text.clone());
        prop_assert_eq!(json.text().unwrap().unwrap(), text);
    }

    #[test]
    fn decode_agrees_with_serde(inner in r#"([a-z]{1,40}|\\n|\\"|\\\\|\\u[0-9a-f]{4}|\\ud83d\\ude00){0,24}"#) {
        let ours = decode(inner.as_bytes()).map(std::borrow::Cow::into_owned).ok();
        prop_assert_eq!(ours, serde_json::from_str::<String>(&format!("\"{inner}\"")).ok());
    }

    #[test]
    fn members_are_found_where_they_are(names in proptest::collection::vec("[a-z\"\\\\é]{0,6}", 0..6)) {
        let mut text = b"{ ".to_vec();
        for (index, name) in names.iter().enumerate() {
            if index > 0 { text.extend_from_slice(b" , "); }
            encode(name, &mut text);
            text.extend_from_slice(format!(" : [{index}] ").as_bytes());
        }
        text.push(b'}');
        let mut found = Vec::new();
        scan_object(&text, 8, |member| {
            let name = decode(&text[member.name]).unwrap().into_owned();
            found.push((name, text[member.value].to_vec()));
        }).unwrap();
        let expected: Vec<_> = names.into_iter().enumerate().map(|(i, n)| (n, format!("[{i}]").into_bytes())).collect();
        prop_assert_eq!(found, expected);
    }
}
