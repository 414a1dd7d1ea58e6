//! Value decoders: each turns a found value into a typed one, or returns a fault.
//!
//! A decoder does not know keys and locations; [`crate::config::table_reader`] adds them.
//!
//! Used by `compile`, `decode`, `kind`, `replica` and `table_reader`.

use std::net::SocketAddr;
use std::time::Duration;

use figment::value::{Num, Value};
use http::{HeaderName, Uri};

use crate::config::problem::nearest;
use dualgauge_model::rollout::Percent;

/// A fault of a value.
#[derive(Debug)]
pub(super) struct ValueError {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl ValueError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        ValueError {
            message: message.into(),
            hint: None,
        }
    }

    /// Adds a suggestion.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The source syntax of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameForm {
    /// A file, where a number and a string differ.
    Typed,
    /// A variable, where every value is text.
    Text,
}

/// A value as found.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawValue<'v> {
    pub(super) value: &'v Value,
    pub(super) spelling: NameForm,
}

impl<'v> RawValue<'v> {
    fn text(self) -> Option<&'v str> {
        self.value.as_str()
    }

    /// Returns whether the value is this text.
    pub(super) fn is_text(self, text: &str) -> bool {
        self.text() == Some(text)
    }

    /// Returns the text, if text may stand for other types.
    fn untyped(self) -> Option<&'v str> {
        self.text().filter(|_| self.spelling == NameForm::Text)
    }

    fn integer(self) -> Option<i128> {
        match self.untyped() {
            Some(text) => text.parse().ok(),
            None => self.value.to_i128(),
        }
    }

    /// Returns the value for a message about its type.
    pub(super) fn describe(self) -> String {
        let value = self.value;
        if let Some(text) = self.untyped() {
            format!("`{}`", cut(text))
        } else if let Some(text) = self.text() {
            format!("the string `{}`", cut(text))
        } else if let Some(truth) = value.to_bool() {
            format!("the boolean `{truth}`")
        } else if let Some(number) = number_text(value) {
            format!("the number `{number}`")
        } else if matches!(value, Value::Array(..)) {
            "a list".to_owned()
        } else if matches!(value, Value::Dict(..)) {
            "a table".to_owned()
        } else {
            "nothing".to_owned()
        }
    }

    fn wrong(self, expected: &str) -> ValueError {
        ValueError::new(format!("{} is not a {expected}", self.describe()))
    }
}

/// Returns the beginning of a text, for a message.
pub(super) fn cut(text: &str) -> String {
    const LONGEST: usize = 60;
    let shown: String = text.chars().take(LONGEST).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    format!("{}{rest}", shown.escape_debug())
}

/// Returns the shortest decimal text that reads back as the same number; never with an exponent.
fn number_text(value: &Value) -> Option<String> {
    if let Value::Num(_, Num::F64(float)) = value {
        return Some(float.to_string());
    }
    value.to_i128().map(|integer| integer.to_string())
}

/// Returns the decimal text of a number.
pub(super) fn number(found: RawValue<'_>) -> Option<String> {
    match found.untyped() {
        Some(text) => Some(text.to_owned()),
        None => number_text(found.value),
    }
}

/// Decodes any text.
pub(super) fn string(found: RawValue<'_>) -> Result<String, ValueError> {
    found
        .text()
        .map(str::to_owned)
        .ok_or_else(|| found.wrong("string"))
}

/// Decodes a text with at least one character.
pub(super) fn text(found: RawValue<'_>) -> Result<String, ValueError> {
    let text = string(found)?;
    if text.trim().is_empty() {
        return Err(ValueError::new(
            "the string is empty; write at least one character",
        ));
    }
    Ok(text)
}

/// The longest name, in bytes.
pub(super) const LONGEST_NAME: usize = 100;

/// Decodes a name. It becomes a metric label, so it is short and has no blanks.
pub(super) fn name(found: RawValue<'_>) -> Result<String, ValueError> {
    let name = string(found)?;
    let fits = (1..=LONGEST_NAME).contains(&name.len());
    if fits && name.chars().all(|c| !c.is_whitespace() && !c.is_control()) {
        return Ok(name);
    }
    Err(ValueError::new(format!(
        "`{}` is not a name; write 1 to {LONGEST_NAME} bytes without spaces",
        cut(&name)
    )))
}

/// Decodes an integer from `from` to `to`.
pub(super) fn whole<T: TryFrom<i128>>(
    from: i64,
    to: i64,
) -> impl Fn(RawValue<'_>) -> Result<T, ValueError> {
    move |found| {
        found
            .integer()
            .filter(|number| (i128::from(from)..=i128::from(to)).contains(number))
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| found.wrong(&format!("whole number from {from} to {to}")))
    }
}

/// Decodes a time with its unit: `500ms`, `10s`, `5m`, `1h`.
pub(super) fn duration(found: RawValue<'_>) -> Result<Duration, ValueError> {
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    const LONGEST_MS: u64 = 365 * 24 * 3_600_000;
    let no_duration = |shown: String| {
        format!(
            "{shown} is not a duration; write a number and a unit, such as `500ms`, `10s` or `5m`"
        )
    };
    let Some(text) = found.text() else {
        return Err(ValueError::new(no_duration(found.describe())));
    };
    let milliseconds = split_unit(text).and_then(|(number, unit)| {
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        number.checked_mul(*factor)
    });
    match milliseconds {
        None => Err(ValueError::new(no_duration(format!("`{}`", cut(text))))),
        Some(longer) if longer > LONGEST_MS => Err(ValueError::new(format!(
            "`{}` is too long; at most `8760h` is allowed",
            cut(text)
        ))),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}

/// Decodes a timeout: a time other than zero.
pub(super) fn timeout(found: RawValue<'_>) -> Result<Duration, ValueError> {
    let duration = duration(found)?;
    if duration.is_zero() {
        return Err(ValueError::new(
            "a timeout of zero fails every call; write at least `1ms`",
        ));
    }
    Ok(duration)
}

/// The largest size. A larger value is no useful limit, and sums of limits must not overflow.
pub(super) const MOST_BYTES: u64 = 1 << 40;

/// Decodes a number of bytes, at least `least`: an integer, or a number and a unit such as `8MiB`.
pub(super) fn size(least: usize) -> impl Fn(RawValue<'_>) -> Result<usize, ValueError> {
    move |found| {
        let bytes = match found.text() {
            Some(text) => {
                split_unit(text).and_then(|(number, unit)| number.checked_mul(size_unit(unit)?))
            }
            None => found
                .integer()
                .and_then(|number| u64::try_from(number).ok()),
        };
        let bytes = bytes.filter(|bytes| *bytes <= MOST_BYTES);
        let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()) else {
            let shown = found.text().map(|text| format!("`{}`", cut(text)));
            return Err(ValueError::new(format!(
                "{} is not a size up to 1024GiB; write a number of bytes, or a number and a unit, such as `64KiB` or `8MiB`",
                shown.unwrap_or_else(|| found.describe())
            )));
        };
        if bytes < least {
            return Err(ValueError::new(format!(
                "{bytes} bytes are too few; at least {least} are needed"
            )));
        }
        Ok(bytes)
    }
}

fn size_unit(unit: &str) -> Option<u64> {
    match unit {
        "" | "B" => Some(1),
        "KB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    }
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse().ok()?;
    Some((number, text[digits..].trim_start()))
}

/// Decodes a percentage in steps of 0.001, as thousandths of a percent: 0 to 100 000.
pub(super) fn percent(found: RawValue<'_>) -> Result<u32, ValueError> {
    let text = match found.text() {
        Some(text) => Some(text.strip_suffix('%').unwrap_or(text).trim_end().to_owned()),
        None => number_text(found.value),
    };
    let percent = text.as_deref().and_then(Percent::parse);
    percent.map(Percent::thousandths).ok_or_else(|| {
        let shown = found.text().map(|text| format!("`{}`", cut(text)));
        ValueError::new(format!(
            "{} is not a percentage; write a number from 0 to 100 in steps of 0.001",
            shown.unwrap_or_else(|| found.describe())
        ))
    })
}

/// Decodes a number with at most `places` decimal places, scaled to an integer. The result is exact: rounding by `f64`
/// does not matter.
pub(super) fn decimal(found: RawValue<'_>, places: usize) -> Option<u32> {
    let text = match found.text() {
        Some(_) => found.untyped().map(str::to_owned),
        None => number_text(found.value),
    }?;
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > places {
        return None;
    }
    format!("{whole}{fraction:0<places$}").parse().ok()
}

/// Decodes one of a closed set of words.
pub(super) fn word<T: Clone>(
    known: &'static [(&'static str, T)],
) -> impl Fn(RawValue<'_>) -> Result<T, ValueError> {
    move |found| {
        let Some(text) = found.text() else {
            return Err(ValueError::new(format!(
                "{} is not allowed here; write {}",
                found.describe(),
                alternatives(known)
            )));
        };
        if let Some((_, value)) = known.iter().find(|(name, _)| *name == text) {
            return Ok(value.clone());
        }
        let near = nearest(text, known.iter().map(|(name, _)| *name));
        Err(ValueError {
            message: format!(
                "`{}` is not allowed here; write {}",
                cut(text),
                alternatives(known)
            ),
            hint: near.map(|word| format!("did you mean `{word}`?")),
        })
    }
}

/// Returns the words as a phrase: `a`, `b` or `c`.
pub(super) fn alternatives<T>(known: &[(&str, T)]) -> String {
    let quoted: Vec<String> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Decodes `false` or `true`, as the given values.
pub(super) fn boolean<T: Copy>(no: T, yes: T) -> impl Fn(RawValue<'_>) -> Result<T, ValueError> {
    move |found| {
        let truth = match found.untyped() {
            Some(text) => text.parse().ok(),
            None => found.value.to_bool(),
        };
        match truth {
            Some(true) => Ok(yes),
            Some(false) => Ok(no),
            None => Err(found.wrong("boolean; write `true` or `false`")),
        }
    }
}

/// Decodes an address to listen on: an IP address and a port.
pub(super) fn address(found: RawValue<'_>) -> Result<SocketAddr, ValueError> {
    let text = string(found)?;
    text.parse().map_err(|_| {
        ValueError::new(format!(
            "`{}` is not an address; write an IP address and a port, such as `127.0.0.1:8080` or `[::]:8080`",
            cut(&text)
        ))
    })
}

/// Decodes a path of the proxy's own, such as `/rpc`.
pub(super) fn path(found: RawValue<'_>) -> Result<String, ValueError> {
    let path = string(found)?;
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#');
    if path.starts_with('/') && path.chars().all(plain) {
        return Ok(path);
    }
    Err(ValueError::new(format!(
        "`{}` is not a path; write one that begins with `/`, without a query",
        cut(&path)
    )))
}

/// Decodes the name of an HTTP header; letter case does not matter.
pub(super) fn header(found: RawValue<'_>) -> Result<HeaderName, ValueError> {
    let text = string(found)?;
    header_named(&text)
}

/// Returns the header of this name.
pub(super) fn header_named(text: &str) -> Result<HeaderName, ValueError> {
    HeaderName::from_bytes(text.as_bytes())
        .map_err(|_| ValueError::new(format!("`{}` is not an HTTP header name", cut(text))))
}

/// Decodes the URL of an upstream: `http`, `https`, `ws` or `wss`.
pub(super) fn url(found: RawValue<'_>) -> Result<Uri, ValueError> {
    let text = string(found)?;
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    let no_url = || {
        ValueError::new(format!(
            "`{}` is not the address of a server; write one such as `http://127.0.0.1:9001`",
            cut(&text)
        ))
    };
    let authority = text.split('/').nth(2).unwrap_or_default();
    if authority.contains('@') {
        // The text is not shown: it contains a password.
        return Err(ValueError::new(
            "a user name in an address is not supported",
        ));
    }
    let uri: Uri = text.parse().map_err(|_| no_url())?;
    let host = uri.host().unwrap_or_default();
    if !matches!(scheme, Some("http" | "https" | "ws" | "wss"))
        || host.is_empty()
        || text.contains('#')
    {
        return Err(no_url());
    }
    Ok(uri)
}

/// Decodes the SHA-256 of an API key: `sha256:` and 64 hexadecimal digits.
pub(super) fn key_hash(found: RawValue<'_>) -> Result<[u8; 32], ValueError> {
    hash(found).ok_or_else(|| {
        ValueError::new("an API key is written as its hash: `sha256:` and 64 hexadecimal digits")
            .hint("`printf %s KEY | sha256sum` prints the digits")
    })
}

/// Decodes the SHA-256 of an admin token, in the form of [`key_hash`].
pub(super) fn token_hash(found: RawValue<'_>) -> Result<[u8; 32], ValueError> {
    hash(found).ok_or_else(|| {
        ValueError::new(
            "an admin token is written as its hash: `sha256:` and 64 hexadecimal digits",
        )
        .hint("`printf %s TOKEN | sha256sum` prints the digits")
    })
}

/// Decodes a hash. No message shows the text: it may be the secret.
fn hash(found: RawValue<'_>) -> Option<[u8; 32]> {
    let digits = found.text()?.strip_prefix("sha256:")?.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = hex(pair)?;
    }
    Some(hash)
}

fn hex(pair: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = pair else { return None };
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}
