//! The line before the data of a chunk: its size and its extensions (RFC 9112 §7.1). Used by `wire::body`.

use super::class::{self, TOKEN};
use super::violation::Violation;

/// A chunk-size line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkLine {
    /// The bytes of data that follow; 0 for the last chunk.
    pub(super) size: u64,
    /// The length of the text after the size.
    pub(super) extensions: usize,
}

/// The digits that fit 64 bits; more are rejected, even zeros.
const MAX_DIGITS: usize = 16;

/// Parses a chunk-size line.
pub(super) fn parse(line: &[u8]) -> Result<ChunkLine, Violation> {
    let mut size = 0;
    let mut digits = 0;
    for digit in line.iter().map_while(|byte| hex(*byte)) {
        digits += 1;
        if digits > MAX_DIGITS {
            return Err(Violation::ChunkSize);
        }
        size = size << 4 | digit;
    }
    let extensions = &line[digits..];
    if line.contains(&b'\r') {
        return Err(Violation::BareCr);
    }
    if digits == 0 || !starts_extension(extensions) {
        return Err(Violation::ChunkSize);
    }
    check_extensions(extensions)?;
    Ok(ChunkLine {
        size,
        extensions: extensions.len(),
    })
}

fn hex(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

/// Returns whether the text after the digits is empty or an extension, and not more of a number.
fn starts_extension(rest: &[u8]) -> bool {
    rest.is_empty() || skip_space(rest).first() == Some(&b';')
}

fn skip_space(rest: &[u8]) -> &[u8] {
    let length = rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    &rest[length..]
}

/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`
fn check_extensions(mut rest: &[u8]) -> Result<(), Violation> {
    while !rest.is_empty() {
        rest = after_extension(rest).ok_or(Violation::ChunkExtension)?;
    }
    Ok(())
}

fn after_extension(rest: &[u8]) -> Option<&[u8]> {
    let rest = skip_space(rest).strip_prefix(b";")?;
    let rest = after_token(skip_space(rest))?;
    let Some(value) = skip_space(rest).strip_prefix(b"=") else {
        return Some(rest);
    };
    let value = skip_space(value);
    match value.strip_prefix(b"\"") {
        Some(quoted) => after_quoted(quoted),
        None => after_token(value),
    }
}

fn after_token(rest: &[u8]) -> Option<&[u8]> {
    let length = rest
        .iter()
        .take_while(|byte| class::is(**byte, TOKEN))
        .count();
    (length > 0).then(|| &rest[length..])
}

/// RFC 9110 §5.6.4; an opening quote was read.
fn after_quoted(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', escaped, after @ ..] if !class::any_control(&[*escaped]) => after,
            [b'\\', ..] | [] => return None,
            [byte, after @ ..] if !class::any_control(&[*byte]) => after,
            [_, ..] => return None,
        }
    }
}
