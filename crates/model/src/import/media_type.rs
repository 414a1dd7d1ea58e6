//! Media types of bodies in documents.
//!
//! Used by `import`.

/// Returns true for `application/json` and types with the suffix `+json`, with any parameters, and for ranges that include them.
pub(super) fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    kind == "application/json"
        || kind.ends_with("+json")
        || kind == "*/*"
        || kind == "application/*"
}
