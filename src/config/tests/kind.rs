//! Decoders of single values: accepted values, and the messages for others.

use std::time::Duration;

use figment::value::Value;

use crate::config::value::{NameForm, RawValue, ValueError, duration, size, timeout, url, whole};

fn typed<T>(
    value: impl Into<Value>,
    kind: impl Fn(RawValue<'_>) -> Result<T, ValueError>,
) -> Result<T, String> {
    let found = RawValue {
        value: &value.into(),
        spelling: NameForm::Typed,
    };
    kind(found).map_err(|wrong| wrong.message)
}

#[test]
fn a_duration_is_a_number_and_a_unit() {
    let fits = [
        ("500ms", 500),
        ("10s", 10_000),
        ("5 m", 300_000),
        ("1h", 3_600_000),
        ("0s", 0),
        ("8760h", 8760 * 3_600_000),
    ];
    for (text, milliseconds) in fits {
        let expected = Ok(Duration::from_millis(milliseconds));
        assert_eq!(typed(text, duration), expected, "{text}");
    }
    for text in ["", "s", "10", "1.5s", "-1s", "10S", "1d", "1s1s", "٣s"] {
        let message = typed(text, duration).unwrap_err();
        assert!(message.contains("is not a duration"), "{text}: {message}");
    }
    for text in ["8761h", "18446744073709551615ms"] {
        assert!(
            typed(text, duration).unwrap_err().contains("too long"),
            "{text}"
        );
    }
    assert!(typed("0ms", timeout).unwrap_err().contains("zero"));
}

#[test]
fn a_size_is_a_number_of_bytes_with_or_without_a_unit() {
    let fits = [
        ("8KiB", 8192),
        ("8 KB", 8000),
        ("8MiB", 8 << 20),
        ("7", 7),
        ("7B", 7),
    ];
    for (text, bytes) in fits {
        assert_eq!(typed(text, size(0)), Ok(bytes), "{text}");
    }
    assert_eq!(typed(7_i64, size(0)), Ok(7));
    for text in [
        "",
        "MiB",
        "1.5MiB",
        "8mib",
        "18446744073709551615KiB",
        "1025GiB",
    ] {
        let message = typed(text, size(0)).unwrap_err();
        assert!(message.contains("is not a size"), "{text}: {message}");
    }
    assert!(
        typed(-1_i64, size(0))
            .unwrap_err()
            .contains("is not a size")
    );
    assert_eq!(
        typed("1KiB", size(8192)),
        Err("1024 bytes are too few; at least 8192 are needed".to_owned())
    );
}

#[test]
fn text_stands_for_a_number_in_variables_only() {
    let value = Value::from("8");
    let found = |spelling| RawValue {
        value: &value,
        spelling,
    };
    assert_eq!(whole::<usize>(1, 9)(found(NameForm::Text)).unwrap(), 8);
    let wrong = whole::<usize>(1, 9)(found(NameForm::Typed)).unwrap_err();
    assert_eq!(
        wrong.message,
        "the string `8` is not a whole number from 1 to 9"
    );
}

#[test]
fn an_upstream_has_an_address_of_http_or_of_a_websocket() {
    for text in [
        "http://127.0.0.1:9001",
        "http://[::1]:1/rpc",
        "http://host/a/b?c=d",
        "https://host/a",
        "wss://host",
    ] {
        assert!(typed(text, url).is_ok(), "{text}");
    }
    for text in [
        "127.0.0.1:9001",
        "/rpc",
        "http://",
        "http:///x",
        "ftp://h/",
        "http://h/#x",
        "http://a b/",
    ] {
        let message = typed(text, url).unwrap_err();
        assert!(
            message.contains("is not the address of a server"),
            "{text}: {message}"
        );
    }
}
