//! Texts of a document, limited. Used by `import::tools`.

use serde_json::Value;

use crate::import::refs::text;

/// Returns a text of the document, limited.
pub(in crate::import) fn limited(value: &Value, name: &str) -> Option<String> {
    /// The longest text that is kept, in bytes.
    const LONGEST: usize = 16 * 1024;
    let found = text(value, name)?.trim();
    let kept = &found[..found.floor_char_boundary(LONGEST)];
    (!kept.is_empty()).then(|| kept.to_owned())
}
