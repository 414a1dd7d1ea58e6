//! Python's `str()` and `repr()`: the text of every tool result is written by them, not as JSON.
//!
//! Used by `crud`, `json::write` and `tools`.

use std::fmt::Write;

use crate::value::Value;

/// What `str(value)` gives: a text as it is, anything else as [`repr`].
pub(super) fn str(value: &Value) -> String {
    if let Value::Text(text) = value {
        text.clone()
    } else {
        repr(value)
    }
}

/// What `repr(value)` gives.
pub(super) fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_repr(&mut out, value);
    out
}

fn write_repr(out: &mut String, value: &Value) {
    match value {
        Value::None => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Int(number) => append(out, format_args!("{number}")),
        Value::Big(digits) => out.push_str(digits),
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Text(text) => write_text(out, text),
        Value::Bytes(bytes) => write_bytes(out, bytes),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                separate(out, index);
                write_repr(out, item);
            }
            out.push(']');
        }
        Value::Dict(dict) => {
            out.push('{');
            for (index, (name, member)) in dict.iter().enumerate() {
                separate(out, index);
                write_text(out, name);
                out.push_str(": ");
                write_repr(out, member);
            }
            out.push('}');
        }
    }
}

/// A float with the fewest digits that read back as the same float: `1.0`, `1e-05`, `1e+16`, `inf`.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    // Rust and Python agree on the digits and on when to use an exponent, but not on how to write it.
    let text = format!("{number:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    match exponent.strip_prefix('-') {
        Some(digits) => format!("{mantissa}e-{digits:0>2}"),
        None => format!("{mantissa}e+{exponent:0>2}"),
    }
}

fn write_text(out: &mut String, text: &str) {
    let quote = quote_for(text.as_bytes());
    out.push(quote);
    for c in text.chars() {
        if c == quote || c.is_ascii() {
            write_ascii(out, c, quote);
        } else if is_printable(c) {
            out.push(c);
        } else {
            match u32::from(c) {
                code @ ..=0xff => append(out, format_args!("\\x{code:02x}")),
                code @ ..=0xffff => append(out, format_args!("\\u{code:04x}")),
                code => append(out, format_args!("\\U{code:08x}")),
            }
        }
    }
    out.push(quote);
}

fn write_bytes(out: &mut String, bytes: &[u8]) {
    let quote = quote_for(bytes);
    out.push('b');
    out.push(quote);
    for &byte in bytes {
        if byte.is_ascii() {
            write_ascii(out, char::from(byte), quote);
        } else {
            append(out, format_args!("\\x{byte:02x}"));
        }
    }
    out.push(quote);
}

fn write_ascii(out: &mut String, c: char, quote: char) {
    match c {
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        _ if c == quote || c == '\\' => out.extend(['\\', c]),
        _ if c.is_ascii_control() => append(out, format_args!("\\x{:02x}", u32::from(c))),
        _ => out.push(c),
    }
}

/// Single quotes, unless that would need an escape and double quotes would not.
fn quote_for(text: &[u8]) -> char {
    if text.contains(&b'\'') && !text.contains(&b'"') {
        '"'
    } else {
        '\''
    }
}

/// Python and Rust call the same Unicode categories unprintable. The space in front keeps Rust from also
/// escaping combining marks, which it does at the start of a text only.
fn is_printable(c: char) -> bool {
    let text = String::from_iter([' ', c]);
    text.escape_debug().eq(text.chars())
}

fn separate(out: &mut String, index: usize) {
    if index > 0 {
        out.push_str(", ");
    }
}

fn append(out: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_prints_as_python_prints_it() {
        let text = |text: &str| Value::from(text);
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        let table = [
            (Value::None, "None"),
            (Value::Bool(true), "True"),
            (Value::Bool(false), "False"),
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::Big("9".repeat(30)), &"9".repeat(30)),
            (text(""), "''"),
            (text("plain"), "'plain'"),
            (text("O'Brien"), "\"O'Brien\""),
            (text("say \"hi\""), "'say \"hi\"'"),
            (text("both ' and \""), "'both \\' and \"'"),
            (text("back\\slash"), "'back\\\\slash'"),
            (text("\t\n\r\u{7}\u{7f}"), "'\\t\\n\\r\\x07\\x7f'"),
            (text("é e\u{301} 😀"), "'é e\u{301} 😀'"),
            (text("\u{a0}\u{ad}\u{200b}"), "'\\xa0\\xad\\u200b'"),
            (text("\u{e0001}"), "'\\U000e0001'"),
            (bytes(b"\x00\xff"), "b'\\x00\\xff'"),
            (bytes(b"\x00\xff'"), "b\"\\x00\\xff'\""),
            (bytes(b"a\n\\"), "b'a\\n\\\\'"),
            (Value::List(vec![]), "[]"),
            (Value::dict([]), "{}"),
            (
                Value::List(vec![Value::dict([
                    ("id", Value::Int(1)),
                    ("name", text("O'Brien")),
                    ("age", Value::None),
                ])]),
                "[{'id': 1, 'name': \"O'Brien\", 'age': None}]",
            ),
        ];
        for (value, expected) in table {
            assert_eq!(repr(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_float_prints_as_python_prints_it() {
        let table = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (123_456_789.125, "123456789.125"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (1e-5, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (number, expected) in table {
            assert_eq!(float(number), expected);
        }
    }

    #[test]
    fn only_a_text_prints_without_quotes() {
        assert_eq!(str(&Value::from("O'Brien")), "O'Brien");
        assert_eq!(str(&Value::Int(1)), "1");
        assert_eq!(str(&Value::List(vec![])), "[]");
    }
}
