//! Routes whose examples or outcome rows show a response that streams, though `stream` does not say so. Used by
//! `cli::check::verdict`.

use http::header::CONTENT_TYPE;

use crate::route::Route;
use crate::stream_format::{RouteStream, StreamFormat};
use dualgauge_patterns::pattern::TextPatterns;

/// Returns the format that an example or a row of the route shows, if the route does not declare it.
#[must_use]
pub fn undeclared_stream(route: &Route) -> Option<StreamFormat> {
    if route.stream != RouteStream::Undeclared {
        return None;
    }
    let replies = route
        .examples
        .iter()
        .filter_map(|example| example.reply.as_ref());
    let headers = replies.flat_map(|reply| &reply.headers);
    let in_examples = headers
        .filter(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE.as_str()))
        .map(|(_, kind)| kind.as_str());
    let rows = route.outcomes.rows().iter();
    let in_rows = rows
        .flat_map(|row| &row.rest.headers)
        .filter(|item| item.name == CONTENT_TYPE)
        .filter_map(|item| match &item.words {
            TextPatterns::Literal(kind) => Some(kind.as_str()),
            TextPatterns::Hole(_) | TextPatterns::Mixed(_) => None,
        });
    in_examples
        .chain(in_rows)
        .find_map(StreamFormat::of_content_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Outcomes, ToolResult};
    use crate::route::test_syntax::{route, row};
    use dualgauge_patterns::pattern::HoleFacts;

    #[test]
    fn a_row_with_the_type_of_a_stream_asks_for_the_key() {
        let mut one = route("GET /r", "m", "");
        assert_eq!(undeclared_stream(&one), None);
        let rest =
            r#"{"status": 200, "headers": {"content-type": "application/jsonl"}, "text": "{t}"}"#;
        let rows = vec![row(0, rest, r#"{"result": "{t}"}"#)];
        one.outcomes = Outcomes::build(rows, &HoleFacts::default(), ToolResult::Any).unwrap();
        assert_eq!(undeclared_stream(&one), Some(StreamFormat::JsonLines));
        one.stream = RouteStream::Never;
        assert_eq!(undeclared_stream(&one), None);
    }
}
