//! Routes that spell out `params` and `body`.

use super::source;
use crate::domain::pattern::Tree;
use crate::domain::route::{RouteSource, parse_route};

#[test]
fn a_full_form_that_means_nothing_is_refused_with_the_key() {
    let text = |text: &str| Tree::Text(text.into());
    let table = |members: &[(&str, &str)]| {
        let members = members
            .iter()
            .map(|(name, value)| ((*name).to_owned(), text(value)));
        Tree::Table(members.collect())
    };
    let twins = table(&[("a", "{a}"), ("A", "{b}")]);
    let middle = Tree::List(vec![text("{a}"), text("*"), text("{b}")]);
    let both = table(&[("a", "{a}"), ("b", "{b}")]);
    for (params, body, key, words) in [
        (both.clone(), Some(twins), "body.A", "only in letter case"),
        (
            middle,
            Some(both.clone()),
            "params[1]",
            "is the first of two",
        ),
        (both.clone(), None, "params", "on the rpc side only"),
        (text("{a}"), None, "params", "stands on the rpc side only"),
        (table(&[("a", "{a}{b}")]), None, "params.a", "touch"),
        (
            table(&[("a", "{>a}")]),
            None,
            "params",
            "writes what nothing reads",
        ),
        (table(&[("...", "x")]), None, "params.\"...\"", "one hole"),
    ] {
        let errors = parse_route(RouteSource {
            params: Some(params),
            body,
            ..source("r", "POST /a", "m")
        });
        let error = errors.unwrap_err().remove(0);
        assert_eq!(error.key, key, "{error:?}");
        assert!(error.what.contains(words), "{error:?}");
    }
}
