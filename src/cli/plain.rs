//! Texts of files and servers without control characters, for terminals. Used by `mismatches` and `replay`.

/// Returns a text with its control characters escaped.
pub(super) fn plain(text: &str) -> String {
    match text.chars().any(char::is_control) {
        true => text.escape_debug().to_string(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(plain("a\u{1b}[2J"), "a\\u{1b}[2J");
        assert_eq!(plain("\"caf\u{e9}\""), "\"caf\u{e9}\"");
    }
}
