//! The names of members that a route has no place for. Reading only counts them; an explanation lists them.
//!
//! Used by `explain::frame`, `explain::rest` and `explain::rpc`.

use crate::route::{Query, Route};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::{ListPattern, ObjectPattern, Pattern};

/// Returns the query parameters that a route does not know.
pub(super) fn in_query(route: &Route, query: Option<&str>) -> Vec<String> {
    let Ok(query) = Query::parse(query) else {
        return Vec::new();
    };
    let unknown = query.unknown(&route.rest_call);
    unknown
        .map(|name| format!("query parameter `{name}`"))
        .collect()
}

/// Returns the members that a pattern does not name, with their paths below `path`.
pub(super) fn in_value(pattern: Option<&Pattern>, value: &Json, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    match pattern {
        Some(pattern) => walk(pattern, value, path, &mut found),
        None => found.extend(names(value).map(|(name, _)| format!("{path}/{name}"))),
    }
    found
}

fn walk(pattern: &Pattern, value: &Json, path: &str, found: &mut Vec<String>) {
    match pattern {
        Pattern::Literal(_) | Pattern::Hole(_) | Pattern::Text(_) => {}
        Pattern::Object(object) => walk_object(object, value, path, found),
        Pattern::List(list) => walk_list(list, value, path, found),
        Pattern::Each(each) if value.kind() == JsonKind::Array => {
            for (index, element) in value.elements().enumerate() {
                walk(
                    &each.item,
                    &value.piece(element),
                    &format!("{path}/{index}"),
                    found,
                );
            }
        }
        Pattern::Each(_) => {}
        Pattern::Either(either) => {
            if let Some(alternative) = either.matching(value) {
                walk(alternative, value, path, found);
            }
        }
    }
}

fn walk_object(object: &ObjectPattern, value: &Json, path: &str, found: &mut Vec<String>) {
    for (name, member) in names(value) {
        let known = object.members.iter().find(|(known, _)| *known == name);
        let member_path = format!("{path}/{name}");
        match known {
            Some((_, pattern)) => walk(pattern, &member, &member_path, found),
            None if object.rest.is_none() => found.push(member_path),
            None => {}
        }
    }
}

fn walk_list(list: &ListPattern, value: &Json, path: &str, found: &mut Vec<String>) {
    if value.kind() != JsonKind::Array {
        return;
    }
    for (index, (pattern, element)) in list.items.iter().zip(value.elements()).enumerate() {
        walk(
            pattern,
            &value.piece(element),
            &format!("{path}/{index}"),
            found,
        );
    }
}

fn names(value: &Json) -> impl Iterator<Item = (String, Json)> {
    let members = value.open().unwrap_or_default().into_iter();
    members.map(|member| (member.name.into_owned(), value.piece(member.value)))
}
