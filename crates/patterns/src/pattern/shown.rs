//! Texts of callers in messages. Used by `pattern`.

/// Returns the start of a caller's text, escaped for messages.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
    if text.chars().nth(64).is_some() {
        shown.push('…');
    }
    shown
}
