//! The formats of request bodies, and forms as they are sent. Used throughout `form`.

use std::borrow::Cow;

use http::HeaderValue;

/// The most fields of a form.
pub(super) const MOST_FIELDS: usize = 10_000;

/// The format of request bodies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BodyFormat {
    /// `application/json`
    #[default]
    Json,
    /// `application/x-www-form-urlencoded`
    Form,
    /// `multipart/form-data`
    Multipart,
}

impl BodyFormat {
    /// Returns the word used in configuration and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            BodyFormat::Json => "json",
            BodyFormat::Form => "form",
            BodyFormat::Multipart => "multipart",
        }
    }

    /// Returns the media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            BodyFormat::Json => "application/json",
            BodyFormat::Form => "application/x-www-form-urlencoded",
            BodyFormat::Multipart => "multipart/form-data",
        }
    }

    /// Returns true for forms.
    #[must_use]
    pub const fn is_form(self) -> bool {
        match self {
            BodyFormat::Json => false,
            BodyFormat::Form | BodyFormat::Multipart => true,
        }
    }
}

/// The reason why a body is not a form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormFault(Cow<'static, str>);

impl FormFault {
    pub(super) fn new(what: impl Into<Cow<'static, str>>) -> FormFault {
        FormFault(what.into())
    }
}

/// A form as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedForm {
    /// The media type, with the boundary of a multipart form.
    pub content_type: HeaderValue,
    /// The body.
    pub body: Vec<u8>,
}
