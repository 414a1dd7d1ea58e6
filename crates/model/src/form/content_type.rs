//! The content type of a form, with its boundary. Used by `form` and `rejections`.

use http::HeaderValue;

use super::disposition::{Parameters, quoted_or_token};
use super::format::BodyFormat;

/// The longest boundary (RFC 2046 §5.1.1).
const LONGEST_BOUNDARY: usize = 70;

/// The content type of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FormType {
    /// `application/x-www-form-urlencoded`
    Urlencoded,
    /// `multipart/form-data`
    Multipart {
        /// The text that separates the parts.
        boundary: String,
    },
}

/// The reason why a content type is not that of a form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeFault {
    /// Another media type.
    #[error("the content type `{0}` is not supported")]
    Other(String),
    /// Another charset.
    #[error("the charset `{0}` is not supported; a form is UTF-8")]
    Charset(String),
    /// No usable boundary.
    #[error(
        "`Content-Type: multipart/form-data` needs a `boundary` of 1 to 70 characters (RFC 2046 §5.1.1)"
    )]
    Boundary,
    /// A parameter is malformed or given twice.
    #[error("a parameter of `Content-Type` is malformed, or given twice")]
    Parameters,
}

impl FormType {
    /// Returns the format.
    #[must_use]
    pub const fn format(&self) -> BodyFormat {
        match self {
            FormType::Urlencoded => BodyFormat::Form,
            FormType::Multipart { .. } => BodyFormat::Multipart,
        }
    }

    /// Parses the value of `Content-Type`.
    ///
    /// # Errors
    /// [`TypeFault`] for other types, charsets and boundaries.
    pub fn of(value: &HeaderValue) -> Result<FormType, TypeFault> {
        let text = String::from_utf8_lossy(value.as_bytes());
        let (essence, parameters) = text.split_once(';').unwrap_or((&text, ""));
        let essence = essence.trim();
        let format = [BodyFormat::Form, BodyFormat::Multipart]
            .into_iter()
            .find(|format| essence.eq_ignore_ascii_case(format.media_type()));
        let Some(format) = format else {
            let shown = essence.escape_default().take(64).collect();
            return Err(TypeFault::Other(shown));
        };
        let parameters = Parameters::parse(parameters).ok_or(TypeFault::Parameters)?;
        if let Some(charset) = parameters.get("charset")
            && !matches!(
                charset.to_ascii_lowercase().as_str(),
                "utf-8" | "utf8" | "us-ascii"
            )
        {
            let shown = charset.escape_default().take(64).collect();
            return Err(TypeFault::Charset(shown));
        }
        match format {
            BodyFormat::Json | BodyFormat::Form => Ok(FormType::Urlencoded),
            BodyFormat::Multipart => {
                let boundary = parameters.get("boundary").unwrap_or_default();
                if boundary.is_empty()
                    || boundary.len() > LONGEST_BOUNDARY
                    || boundary.ends_with(' ')
                    || !boundary.bytes().all(is_boundary_byte)
                {
                    return Err(TypeFault::Boundary);
                }
                Ok(FormType::Multipart {
                    boundary: boundary.to_owned(),
                })
            }
        }
    }
}

/// Returns true for the characters of a boundary (RFC 2046 §5.1.1).
fn is_boundary_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte)
}

/// Returns true if a text is a media type, with any parameters, that a part can carry.
pub(super) fn is_media_type(text: &str) -> bool {
    /// Longer ones exist in no registry.
    const LONGEST: usize = 255;
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_token = |text: &str| matches!(quoted_or_token(text), Some((token, "")) if token == text);
    let halves = essence.trim_end().split_once('/');
    text.len() <= LONGEST
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && halves.is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
        && Parameters::parse(parameters).is_some()
}
