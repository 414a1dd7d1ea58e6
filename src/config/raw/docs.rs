//! Schemas and documentation of routes. Used by `compile::routes`, `decode::route_docs` and `schema`.

use std::path::PathBuf;

use serde_json::Value;

use crate::config::problem::Spanned;

/// `title`, `summary`, `description`, `body_description` and `tags` of a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawDocs {
    /// `title`
    pub title: Option<Spanned<String>>,
    /// `summary`
    pub summary: Option<Spanned<String>>,
    /// `description`
    pub description: Option<Spanned<String>>,
    /// `body_description`
    pub body: Option<Spanned<String>>,
    /// `tags`, in order.
    pub tags: Vec<Spanned<String>>,
}

/// `schema` of a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawSchemas {
    /// `params`
    pub params: Option<Spanned<RawSchema>>,
    /// `result`
    pub result: Option<Spanned<RawSchema>>,
    /// `successes`: the declared successes by status, which only document.
    pub successes: Option<Spanned<RawSchema>>,
    /// `failures`: the declared failures by status, which only document.
    pub failures: Option<Spanned<RawSchema>>,
    /// `validate`
    pub validate: Option<Spanned<bool>>,
}

/// A JSON Schema, not compiled yet.
#[derive(Debug, Clone, PartialEq)]
pub enum RawSchema {
    /// The schema itself.
    Written(Value),
    /// The file with the schema, relative to the file that names it; read after decoding.
    File(PathBuf),
}
