//! When a route of one plan compares its calls as that of another plan does.

use super::{BOTH, plan};
use dualgauge_model::plan::Plan;

const ROUTE: &str = "\
[[route]]
name = 'r'
rest = 'GET /r/{id}'
rpc = 'r'
schema = { params = { type = 'object', required = ['id'] } }
[[route.outcome]]
rest = { status = 404, body = '{data}' }
rpc = { error = { code = -5, data = '{data}' } }
";

/// Whether the route compares its calls as before, where the configuration becomes this one.
fn compares_like_before(changed: &str) -> bool {
    let (before, after) = (plan(&format!("{BOTH}{ROUTE}")), plan(changed));
    let place = |plan: &Plan| {
        let mut routes = plan.routes.routes().iter();
        routes.position(|route| route.name == "r").unwrap()
    };
    after.compares_like(place(&after), &before, place(&before))
}

#[test]
fn a_route_that_only_moves_in_its_file_or_gets_words_for_people_is_what_it_was() {
    let other = "[[route]]\nname = 'o'\nrest = 'GET /o'\nrpc = 'o'\n";
    let words = ROUTE.replace("rpc = 'r'\n", "rpc = 'r'\nsuccessor = 'v2'\n");
    for same in [
        format!("{BOTH}{ROUTE}"),
        format!("# a comment\n{BOTH}{other}{ROUTE}"),
        format!("{BOTH}{words}"),
        format!("{BOTH}{ROUTE}").replace(":9001", ":9003"),
    ] {
        assert!(compares_like_before(&same), "{same}");
    }
}

#[test]
fn a_change_of_what_a_route_does_is_seen() {
    for (from, to) in [
        ("'GET /r/{id}'", "'GET /q/{id}'"),
        ("rpc = 'r'", "rpc = 'q'"),
        (
            "'GET /r/{id}'\n",
            "'GET /r/{id}'\nparams = { key = '{id}' }\n",
        ),
        ("['id']", "[]"),
        ("404", "410"),
        ("-5", "-6"),
        ("'GET /r/{id}'\n", "'GET /r/{id}'\ntimeout = '3s'\n"),
        (
            "'GET /r/{id}'\n",
            "'GET /r/{id}'\ncompare = { ignore = ['/body/at'] }\n",
        ),
    ] {
        let changed = ROUTE.replace(from, to);
        assert_ne!(changed, ROUTE, "{from}");
        assert!(!compares_like_before(&format!("{BOTH}{changed}")), "{to}");
    }
    let rules = format!("{BOTH}{ROUTE}[compare]\nignore = ['/body/at']\n");
    assert!(!compares_like_before(&rules));
    let upstream = format!("{BOTH}{ROUTE}").replace("upstream.old", "upstream.older");
    assert!(!compares_like_before(&upstream));
}
