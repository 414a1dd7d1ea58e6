//! Golden pairs, faults and laws of forms.

use std::borrow::Cow;

use proptest::prelude::*;

use super::field::{Field, FieldValue, File, from_json, to_json};
use super::*;

fn multipart() -> FormType {
    let boundary = "b".to_owned();
    FormType::Multipart { boundary }
}

fn parts(lines: &str) -> String {
    lines.replace('\n', "\r\n")
}

fn read(form_type: &FormType, body: &str) -> Result<String, String> {
    let object = decode(form_type, body.as_bytes()).map_err(|fault| fault.to_string())?;
    Ok(String::from_utf8(object.as_bytes().to_vec()).unwrap())
}

#[test]
fn a_field_is_a_string_and_a_repeated_one_an_array() {
    let rows = [
        ("", "{}"),
        ("a=1", r#"{"a":"1"}"#),
        ("a=1&b=&c", r#"{"a":"1","b":"","c":""}"#),
        ("a=1&b=2&a=3", r#"{"a":["1","3"],"b":"2"}"#),
        ("a+b=c+d%20e", r#"{"a b":"c d e"}"#),
        ("f%5Bx%5D=%C3%A4", r#"{"f[x]":"ä"}"#),
    ];
    for (body, object) in rows {
        assert_eq!(
            read(&FormType::Urlencoded, body).as_deref(),
            Ok(object),
            "{body}"
        );
    }
}

#[test]
fn a_part_is_a_text_or_a_file() {
    let body = parts(
        "ignored\n--b\nContent-Disposition: form-data; name=\"a\"\n\nx\n--b  \ncontent-disposition: form-data; name=f; filename=\"p%22q.txt\"\nContent-Type: text/plain\n\nhi\n\n--b\nContent-Disposition: form-data; name=\"f\"; filename=\"\"\nX-Other: 1\n\n\n--b\nContent-Disposition: form-data; name=\"n\"; filename*=UTF-8''na%C3%AFve\n\n!\n--b--\nignored",
    );
    let object = r#"{"a":"x","f":[{"content":"aGkNCg==","filename":"p\"q.txt","content_type":"text/plain"},{"content":"","filename":""}],"n":{"content":"IQ==","filename":"naïve"}}"#;
    assert_eq!(read(&multipart(), &body).as_deref(), Ok(object));
}

/// Returns forms that end too early or lack a header, and a part of each message.
fn incomplete_forms() -> Vec<(FormType, String, &'static str)> {
    let head = "Content-Disposition: form-data; name=\"a\"";
    vec![
        (FormType::Urlencoded, "a=%zz".to_owned(), "the field `a`"),
        (
            FormType::Urlencoded,
            "%ff=1".to_owned(),
            "a name in the form",
        ),
        (multipart(), "x".to_owned(), "is not in the body"),
        (
            multipart(),
            format!("--b\n{head}\n\nx"),
            "part 1 is not complete",
        ),
        (
            multipart(),
            format!("--bb\n{head}\n\nx\n--b--"),
            "not followed by a line break",
        ),
        (
            multipart(),
            format!("--b\n{head}\nx\n--b--"),
            "do not end with a blank line",
        ),
        (
            multipart(),
            "--b\n\n\nx\n--b--".to_owned(),
            "is not `Name: value`",
        ),
        (
            multipart(),
            "--b\nA: b\n\nx\n--b--".to_owned(),
            "needs `Content-Disposition",
        ),
        (
            multipart(),
            format!("--b\n{head}; name=c\n\nx\n--b--"),
            "needs `Content-Disposition",
        ),
        (
            multipart(),
            format!("--b\n{head}\n{head}\n\nx\n--b--"),
            "twice",
        ),
    ]
}

/// Returns forms with foreign encodings or beyond a limit, and a part of each message.
fn excessive_forms() -> Vec<(FormType, String, &'static str)> {
    let head = "Content-Disposition: form-data; name=\"a\"";
    vec![
        (
            multipart(),
            format!("--b\n{head}\nContent-Transfer-Encoding: base64\n\nx\n--b--"),
            "Content-Transfer-Encoding",
        ),
        (
            multipart(),
            format!("--b\n{head}\nContent-Type: multipart/mixed; boundary=c\n\nx\n--b--"),
            "a multipart itself",
        ),
        (
            multipart(),
            format!("--b\n{head}\nContent-Type: text/plain; charset=latin1\n\nx\n--b--"),
            "charset",
        ),
        (
            multipart(),
            format!("--b\n{head}\n{}\n\nx\n--b--", "A: b\n".repeat(20)),
            "more than 16 headers",
        ),
        (
            multipart(),
            format!("--b\n{head}\nA: {}\n\nx\n--b--", "x".repeat(9000)),
            "within 8192 bytes",
        ),
        (
            FormType::Urlencoded,
            "a&".repeat(10_001),
            "more than 10000 fields",
        ),
        (
            multipart(),
            format!("{}--b--", format!("--b\n{head}\n\n\n").repeat(10_001)),
            "more than 10000 parts",
        ),
    ]
}

#[test]
fn a_malformed_form_is_refused_with_its_place() {
    let head = "Content-Disposition: form-data; name=\"a\"";
    let rows = incomplete_forms().into_iter().chain(excessive_forms());
    for (form_type, body, wanted) in rows {
        let body = match form_type {
            FormType::Urlencoded => body,
            FormType::Multipart { .. } => parts(&body),
        };
        let fault = read(&form_type, &body).unwrap_err();
        assert!(fault.contains(wanted), "{fault} has no {wanted}");
    }
    assert!(decode(&FormType::Urlencoded, b"a=\xff").is_err());
    let binary = [
        parts(&format!("--b\n{head}\n\n")).as_bytes(),
        b"\xff\r\n--b--",
    ]
    .concat();
    assert!(decode(&multipart(), &binary).is_err());
}

#[test]
fn a_content_type_says_the_format_and_the_boundary() {
    let of = |text: &str| FormType::of(&HeaderValue::try_from(text).unwrap());
    let urlencoded = "application/x-www-form-urlencoded";
    for text in [
        urlencoded,
        "Application/X-WWW-Form-Urlencoded; charset=\"UTF-8\"",
    ] {
        assert_eq!(of(text), Ok(FormType::Urlencoded));
    }
    assert_eq!(of("multipart/form-data; boundary=\"b\""), Ok(multipart()));
    let boundaries = [
        "",
        "; boundary=",
        "; boundary=\"a b \"",
        "; boundary=\"a\u{22}x",
        "; boundary=b; boundary=c",
    ];
    for wrong in boundaries {
        assert!(
            of(&format!("multipart/form-data{wrong}")).is_err(),
            "{wrong}"
        );
    }
    assert_eq!(
        of(&format!("multipart/form-data; boundary={}", "x".repeat(71))),
        Err(TypeFault::Boundary)
    );
    assert!(matches!(of("application/json"), Err(TypeFault::Other(_))));
    assert!(matches!(
        of(&format!("{urlencoded}; charset=latin1")),
        Err(TypeFault::Charset(_))
    ));
}

#[test]
fn a_value_that_no_field_holds_is_refused() {
    let rows = [
        ("[]", "a form is an object"),
        (
            r#"{"a":1}"#,
            "a: a field of a form is a string or a file, not a number",
        ),
        (r#"{"a":["x"]}"#, "fewer than two elements"),
        (
            r#"{"a":{"content":"x","filename":"f"}}"#,
            "a/content: it is not base64",
        ),
        (
            r#"{"a":{"filename":"f"}}"#,
            "a/content: a file needs its content",
        ),
        (
            r#"{"a":{"content":"","x":"y"}}"#,
            "a/x: a file of a form has",
        ),
        (
            r#"{"a":{"content":""}}"#,
            "a/filename: a file without a name",
        ),
        (
            r#"{"a":{"content":"","filename":"a\\b"}}"#,
            "a/filename: servers read",
        ),
        (
            r#"{"a":{"content":"","filename":"f","content_type":"x\r\ny: z"}}"#,
            "a/content_type",
        ),
        (r#"{"a\"\r\n":"x"}"#, "servers read this name"),
    ];
    for (object, wanted) in rows {
        let object = Json::literal(object);
        let error = encode(BodyFormat::Multipart, &object, &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains(wanted), "{error} has no {wanted}");
    }
    let file = Json::literal(r#"{"a":{"content":"","filename":"f"}}"#);
    let error = encode(BodyFormat::Form, &file, &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("has no files"), "{error}");
}

#[test]
fn a_field_of_json_says_so() {
    let object = Json::literal(r#"{"a":"{}","b":"x"}"#);
    let form = encode(BodyFormat::Multipart, &object, &["a".to_owned()]).unwrap();
    let body = String::from_utf8(form.body).unwrap();
    assert_eq!(
        body.matches("name=\"a\"\r\nContent-Type: application/json\r\n")
            .count(),
        1
    );
    assert_eq!(body.matches("Content-Type").count(), 1);
}

fn value() -> impl Strategy<Value = FieldValue<'static>> {
    let text = "[ -~äß\r\n]{0,12}".prop_map(|text| FieldValue::Text(Cow::Owned(text)));
    let name = proptest::option::of("[a-z \"ä.%]{0,8}");
    let kind = prop::sample::select(&["image/png", "application/octet-stream; a=\"b;c\""][..]);
    let content = proptest::collection::vec(any::<u8>(), 0..40);
    let file = (content, name, kind).prop_map(|(content, name, kind)| {
        FieldValue::File(File {
            content: Cow::Owned(content),
            name: name.map(Cow::Owned),
            content_type: Some(Cow::Borrowed(kind)),
        })
    });
    prop_oneof![text, file]
}

fn fields() -> impl Strategy<Value = Vec<Field<'static>>> {
    // Few names, so that fields repeat; none that differ in letter case only.
    let field = ("[a-c]|x y|f\\[g\\]", value()).prop_map(|(name, value)| Field {
        name: Cow::Owned(name),
        value,
    });
    proptest::collection::vec(field, 0..8)
}

proptest! {
    #[test]
    fn a_written_form_reads_as_the_same_object(fields in fields()) {
        let object = to_json(&fields);
        for format in [BodyFormat::Form, BodyFormat::Multipart] {
            let Ok(written) = encode(format, &object, &[]) else { continue };
            let form_type = FormType::of(&written.content_type).unwrap();
            prop_assert_eq!(decode(&form_type, &written.body), Ok(object.clone()));
        }
        let has_file = fields.iter().any(|field| matches!(field.value, FieldValue::File(_)));
        let has_escape = object.as_bytes().windows(3).any(|text| text == b"%22");
        prop_assert!(has_escape || encode(BodyFormat::Multipart, &object, &[]).is_ok());
        prop_assert_eq!(encode(BodyFormat::Form, &object, &[]).is_err(), has_file);
        prop_assert_eq!(to_json(&from_json(&object).unwrap()), object);
    }

    #[test]
    fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_any_bytes(&data);
    }

    #[test]
    fn any_pieces_of_a_form_are_read_or_refused(
        pieces in proptest::collection::vec(prop::sample::select(&[
            "--b", "\r\n", "--", "Content-Disposition: form-data", "; name=\"a\"", "; filename=f",
            "Content-Type: ", "image/png", "x", "\"", "\\", "&", "=", "%41", " ",
        ][..]), 0..24),
        first in 0_u8..2,
    ) {
        let mut data = vec![first];
        data.extend(pieces.concat().into_bytes());
        check_any_bytes(&data);
    }
}
