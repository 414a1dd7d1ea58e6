//! The response to `tools/list`, page by page (MCP, "Pagination").
//!
//! Laws: the pages together have every tool once, in order; a cursor of another list is refused, so a reload between
//! two pages cannot hide a tool.
//!
//! Used by `config` and `local_reply`.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::jsonrpc::ErrorObject;
use dualgauge_patterns::json::Json;

/// The most bytes of a page with more than one tool.
const LARGEST: usize = 4 * 1024 * 1024;
/// "Invalid params", JSON-RPC 2.0 §5.1.
const INVALID_PARAMS: i64 = -32602;

/// A list of tools.
#[derive(Debug, Clone)]
pub struct ToolList {
    /// Each tool as JSON.
    tools: Vec<String>,
    /// The most tools of a page.
    page: usize,
    /// A hash of the tools, which distinguishes the cursors of two lists.
    digest: u64,
}

impl ToolList {
    /// Creates a list with pages of at most `page` tools.
    #[must_use]
    pub fn new(tools: &[Value], page: usize) -> ToolList {
        let tools: Vec<String> = tools.iter().map(Value::to_string).collect();
        let mut hasher = DefaultHasher::new();
        tools.hash(&mut hasher);
        ToolList {
            digest: hasher.finish(),
            page: page.max(1),
            tools,
        }
    }

    /// Returns the page at the cursor of the params, or the first one.
    ///
    /// # Errors
    /// An error object for a cursor that is not of this list.
    pub fn page(&self, params: Option<&Json>) -> Result<Json, ErrorObject> {
        let cursor = params.and_then(|params| params.member("cursor"));
        let cursor = cursor.filter(|cursor| cursor.as_bytes() != b"null");
        let start = match cursor {
            None => 0,
            Some(cursor) => self.start(&cursor).ok_or_else(stale)?,
        };
        let mut text = String::from("{\"tools\":[");
        let mut next = start;
        for tool in self.tools[start..].iter().take(self.page) {
            if next > start {
                if text.len() + tool.len() > LARGEST {
                    break;
                }
                text.push(',');
            }
            text.push_str(tool);
            next += 1;
        }
        text.push(']');
        if next < self.tools.len() {
            text.push_str(&format!(",\"nextCursor\":\"{:016x}.{next}\"", self.digest));
        }
        text.push('}');
        Ok(Json::written(text))
    }

    fn start(&self, cursor: &Json) -> Option<usize> {
        let text = cursor.text()?.ok()?;
        let (digest, start) = text.split_once('.')?;
        let start: usize = start.parse().ok()?;
        let is_own = digest == format!("{:016x}", self.digest);
        (is_own && start < self.tools.len()).then_some(start)
    }
}

fn stale() -> ErrorObject {
    ErrorObject {
        code: INVALID_PARAMS,
        message: Json::string(
            "the cursor is not one of this list, which may have changed; list the tools again from the start",
        ),
        data: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(list: &ToolList) -> Vec<Value> {
        let mut found = Vec::new();
        let mut params = None;
        loop {
            let page = list.page(params.as_ref()).unwrap();
            let page: Value = serde_json::from_slice(page.as_bytes()).unwrap();
            found.extend(page["tools"].as_array().unwrap().clone());
            match page.get("nextCursor") {
                Some(cursor) => {
                    params = Some(Json::written(json!({ "cursor": cursor }).to_string()))
                }
                None => return found,
            }
        }
    }

    #[test]
    fn the_pages_have_every_tool_once() {
        for count in [0, 1, 2, 3, 7] {
            let tools: Vec<Value> = (0..count).map(|at| json!({ "name": at })).collect();
            for page in [1, 2, 3, 100] {
                assert_eq!(all(&ToolList::new(&tools, page)), tools);
            }
        }
    }

    #[test]
    fn a_page_is_bounded_in_bytes() {
        let large = json!({ "name": "x".repeat(LARGEST / 2) });
        let tools = vec![large; 3];
        let list = ToolList::new(&tools, 100);
        assert!(list.page(None).unwrap().as_bytes().len() < LARGEST + 100);
        assert_eq!(all(&list).len(), 3);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let list = ToolList::new(&[json!(1), json!(2)], 1);
        let other = ToolList::new(&[json!(1), json!(3)], 1);
        let page = other.page(None).unwrap();
        let page: Value = serde_json::from_slice(page.as_bytes()).unwrap();
        for cursor in [
            page["nextCursor"].clone(),
            json!(""),
            json!("0.0"),
            json!(7),
        ] {
            let params = Json::written(json!({ "cursor": cursor }).to_string());
            assert_eq!(list.page(Some(&params)).unwrap_err().code, -32602);
        }
    }
}
