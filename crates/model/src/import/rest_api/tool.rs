//! A tool of a server, with the route and the path that it gets. Used by `rest_api` and `rest_api::docs`.

use serde_json::Value;

use crate::import::refs::{printable, text};

/// The longest summary of a tool.
const LONGEST_SUMMARY: usize = 200;

/// A tool that is being drafted.
pub(super) struct Tool<'v> {
    pub(super) name: &'v str,
    pub(super) value: &'v Value,
    pub(super) route: String,
    pub(super) path: String,
}

impl Tool<'_> {
    /// Returns true if the tool gives a hint.
    pub(super) fn hint(&self, name: &str) -> bool {
        let annotations = self.value.get("annotations");
        let hint = annotations.and_then(|annotations| annotations.get(name));
        hint.and_then(Value::as_bool) == Some(true)
    }

    /// Returns the effect of a second call.
    pub(super) fn effect(&self) -> &'static str {
        if self.hint("readOnlyHint") {
            "safe"
        } else if self.hint("idempotentHint") {
            "idempotent"
        } else {
            "unsafe"
        }
    }

    /// Returns the title, which may stand in the annotations (MCP 2025-03-26).
    pub(super) fn title(&self) -> Option<&str> {
        let annotations = self.value.get("annotations");
        text(self.value, "title")
            .or_else(|| text(annotations?, "title"))
            .filter(|title| !title.is_empty())
    }

    /// Returns the title, else the first line of the description.
    pub(super) fn summary(&self) -> String {
        let description = || text(self.value, "description").and_then(|all| all.lines().next());
        let words = self.title().or_else(description).unwrap_or(self.name);
        printable(words).chars().take(LONGEST_SUMMARY).collect()
    }
}
