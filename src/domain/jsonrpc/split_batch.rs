//! What a server says at once: servers of some revisions put several messages into one array (JSON-RPC 2.0 §6;
//! MCP 2025-03-26, "Batching"), asked or not.

use bytes::Bytes;

use crate::domain::json::{Json, elements};

/// How many messages of one array are read; an array of more is no message.
const MOST: usize = 1024;

/// The messages of an array, also of one that is nested too deeply; nothing where the text is another value, or an array of none or too many.
#[must_use]
pub fn parts(text: &Bytes, depth: u16) -> Option<Vec<Bytes>> {
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
        .map(|place| whole.piece(place).into_bytes())
        .collect();
    (1..=MOST).contains(&all.len()).then_some(all)
}

/// The messages of an array that is nested too deeply. They are not checked: each of them is read on its own.
fn shallow(text: &Bytes) -> Option<Vec<Bytes>> {
    let text = text.slice(text.len() - text.trim_ascii_start().len()..);
    let all: Vec<Bytes> = elements(&text)
        .take(MOST + 1)
        .map(|place| text.slice(place))
        .collect();
    let are_objects = all.iter().all(|part| part.first() == Some(&b'{'));
    (are_objects && (1..=MOST).contains(&all.len())).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_several_messages_and_all_else_is_one() {
        let read = |text: &'static str| parts(&text.into(), 4);
        let two = read(" [ {\"id\" :1} ,\n{\"a\":[2]}]").unwrap();
        assert_eq!(two, ["{\"id\" :1}", "{\"a\":[2]}"]);
        for other in ["{\"a\":[1]}", "", "[]", "[1", "[[[[[1]]]]]"] {
            assert_eq!(read(other), None, "{other}");
        }
        let two = read("[{\"id\":1}, {\"id\":2,\"result\":[[[[]]]]}]").unwrap();
        assert_eq!(two, ["{\"id\":1}", "{\"id\":2,\"result\":[[[[]]]]}"]);
        let many = format!("[{}1]", "1,".repeat(MOST));
        assert_eq!(parts(&many.into(), 4), None);
    }
}
