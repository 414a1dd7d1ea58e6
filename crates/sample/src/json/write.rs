//! Value → text, in the two ways of the two web stacks of the server. Used by `mcp`, `reply`, `rest` and `rpc`.

use std::fmt::Write;

use crate::repr;
use crate::value::Value;

/// How a JSON text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spacing {
    /// No spaces, Unicode as it is: what the web framework sends.
    Compact,
    /// `": "` and `", "`, everything beyond ASCII escaped: what a plain `json.dumps` sends.
    Dumps,
}

/// Writes one JSON text.
pub(crate) fn write(value: &Value, spacing: Spacing) -> String {
    let mut out = String::new();
    write_value(&mut out, value, spacing);
    out
}

fn write_value(out: &mut String, value: &Value, spacing: Spacing) {
    let (comma, colon) = match spacing {
        Spacing::Compact => (",", ":"),
        Spacing::Dumps => (", ", ": "),
    };
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => append(out, format_args!("{number}")),
        Value::Big(digits) => out.push_str(digits),
        Value::Float(number) if number.is_finite() => out.push_str(&repr::float(*number)),
        // JSON has no such number; it can only be an echo of what the caller sent.
        Value::Float(_) => out.push_str("null"),
        Value::Text(text) => write_text(out, text, spacing),
        // Rows are printed by `repr` before they are put in an answer, so none is left here.
        Value::Bytes(_) => write_text(out, &repr::repr(value), spacing),
        Value::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { comma } else { "" });
                write_value(out, item, spacing);
            }
            out.push(']');
        }
        Value::Dict(dict) => {
            out.push('{');
            for (index, (name, member)) in dict.iter().enumerate() {
                out.push_str(if index > 0 { comma } else { "" });
                write_text(out, name, spacing);
                out.push_str(colon);
                write_value(out, member, spacing);
            }
            out.push('}');
        }
    }
}

fn write_text(out: &mut String, text: &str, spacing: Spacing) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (spacing == Spacing::Dumps && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    append(out, format_args!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn append(out: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = out.write_fmt(piece);
}
