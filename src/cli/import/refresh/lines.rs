//! The line ends of an edited file, which a merge keeps.
//!
//! Law (tested): restoring a unified text gives the text.
//!
//! Used by `import::refresh::merge`.

/// The line ends of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineEnds {
    /// True if each line ends with CR LF.
    is_windows: bool,
    /// True if the last line has no end.
    is_open: bool,
}

impl LineEnds {
    pub(super) fn of(text: &str) -> LineEnds {
        let ends = text.matches('\n').count();
        LineEnds {
            is_windows: ends > 0 && text.matches("\r\n").count() == ends,
            is_open: !text.is_empty() && !text.ends_with('\n'),
        }
    }

    /// Returns the text with a line feed at the end of each line.
    pub(super) fn unified(self, text: &str) -> String {
        let mut text = match self.is_windows {
            true => text.replace("\r\n", "\n"),
            false => text.to_owned(),
        };
        if self.is_open {
            text.push('\n');
        }
        text
    }

    /// Returns a unified text with these line ends.
    pub(super) fn restored(self, text: &str) -> String {
        let text = match self.is_open {
            true => text.strip_suffix('\n').unwrap_or(text),
            false => text,
        };
        match self.is_windows {
            true => text.replace('\n', "\r\n"),
            false => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn restoring_a_unified_text_gives_the_text(lines in prop::collection::vec("[a-c ]{0,3}", 0..5), end in prop::sample::select(vec!["\n", "\r\n"])) {
            let text = lines.join(end);
            let ends = LineEnds::of(&text);
            let unified = ends.unified(&text);
            prop_assert!(!unified.contains('\r') && (text.is_empty() || unified.ends_with('\n')));
            prop_assert_eq!(ends.restored(&unified), text);
        }
    }
}
