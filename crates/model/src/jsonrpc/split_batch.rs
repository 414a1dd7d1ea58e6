//! Splitting of arrays of server messages: servers of some revisions send several messages in one array (JSON-RPC 2.0
//! §6; MCP 2025-03-26, "Batching").
//!
//! Used by `gateway::access_record::message`, `gateway::rpc::replay` and `upstream::mcp::post`.

use bytes::Bytes;

use dualgauge_patterns::json::{Json, elements};

/// Maximum number of messages in one array; a larger array is not a message.
const MOST: usize = 1024;

/// Returns the messages of an array, even of one that is nested too deeply. Returns `None` for another value, or for an
/// array that is empty or too large.
#[must_use]
pub fn split_batch(text: &Bytes, depth: u16) -> Option<Vec<Bytes>> {
    if text.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let whole = match Json::parse(text.clone(), depth) {
        Ok(whole) => whole,
        Err(fault) if fault.is_too_deep() => return shallow(text),
        Err(_) => return None,
    };
    let all: Vec<Bytes> = whole
        .elements()
        .take(MOST + 1)
        .map(|range| whole.piece(range).into_bytes())
        .collect();
    (1..=MOST).contains(&all.len()).then_some(all)
}

/// Returns the messages of an array that is nested too deeply. They are unchecked: the caller reads each separately.
fn shallow(text: &Bytes) -> Option<Vec<Bytes>> {
    let text = text.slice(text.len() - text.trim_ascii_start().len()..);
    let all: Vec<Bytes> = elements(&text)
        .take(MOST + 1)
        .map(|range| text.slice(range))
        .collect();
    let are_objects = all.iter().all(|part| part.first() == Some(&b'{'));
    (are_objects && (1..=MOST).contains(&all.len())).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_several_messages_and_all_else_is_one() {
        let read = |text: &'static str| split_batch(&text.into(), 4);
        let two = read(" [ {\"id\" :1} ,\n{\"a\":[2]}]").unwrap();
        assert_eq!(two, ["{\"id\" :1}", "{\"a\":[2]}"]);
        for other in ["{\"a\":[1]}", "", "[]", "[1", "[[[[[1]]]]]"] {
            assert_eq!(read(other), None, "{other}");
        }
        let two = read("[{\"id\":1}, {\"id\":2,\"result\":[[[[]]]]}]").unwrap();
        assert_eq!(two, ["{\"id\":1}", "{\"id\":2,\"result\":[[[[]]]]}"]);
        let many = format!("[{}1]", "1,".repeat(MOST));
        assert_eq!(split_batch(&many.into(), 4), None);
    }
}
