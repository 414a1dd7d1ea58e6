//! The laws of selection, over generated tables of routes in the full form.

use bytes::Bytes;

use super::*;
use crate::route::arbitrary::{Sent, rest_call, rpc_call};
use crate::route::specificity::refines;
use crate::translate::{MethodCall, RestHead, read_body, read_rest, read_rpc};
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::pattern::arbitrary::{Dice, thrown};
use dualgauge_patterns::side::Side;

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

fn text(text: &str) -> SourceTree {
    SourceTree::Text(text.to_owned())
}

const PATHS: [&str; 12] = [
    "/a",
    "/a/{x}",
    "/a/b",
    "/{x}/b",
    "/{x=**}",
    "/a/{x}:v",
    "/a/{x=**}",
    "/a/{x}.j",
    "/a/t{x}",
    "/a/t{x}.j",
    "/a/{x}-{y:integer}",
    "/a/{x}@:v",
];

/// A route of a small world, in which many share a path, a method, or both.
fn full_form(index: usize, dice: &mut Dice) -> RouteSource {
    let path = dice.pick(&PATHS);
    let mut url = format!("{} {path}", dice.pick(&["GET", "POST", "POST", "PUT"]));
    let mut params = Vec::new();
    for name in ["x", "y"]
        .iter()
        .filter(|name| path.contains(&format!("{{{name}")))
    {
        params.push(((*name).to_owned(), text(&format!("{{{name}}}"))));
    }
    let mut separator = '?';
    for (key, spelled, member) in [
        ("k", dice.pick(&["", "", "{k}", "{k?}", "1", "{k=1}"]), "k"),
        (
            "j",
            dice.pick(&["", "", "{j:integer?}", "{j:integer}"]),
            "j",
        ),
    ] {
        if spelled.is_empty() {
            continue;
        }
        url.push_str(&format!("{separator}{key}={spelled}"));
        separator = '&';
        let twin = if spelled == "1" {
            "one".to_owned()
        } else {
            format!("{{{member}}}")
        };
        params.push((member.to_owned(), text(&twin)));
    }
    let mut body = Vec::new();
    for name in ["b", "c"] {
        let spelled = match dice.below(7) {
            0 => format!("{{{name}}}"),
            1 => format!("{{{name}?}}"),
            2 => format!("{{{name}:integer}}"),
            3 => "lit".to_owned(),
            _ => continue,
        };
        body.push((name.to_owned(), text(&spelled)));
        params.push((name.to_owned(), text(&spelled)));
    }
    let has_body = !url.starts_with("GET") && (!body.is_empty() || dice.below(2) == 0);
    if !has_body {
        params.retain(|(name, _)| !["b", "c"].contains(&&**name));
    }
    RouteSource {
        name: format!("r{index}"),
        rest: url,
        rpc: dice.pick(&["m", "m", "n", "o"]).to_owned(),
        params: Some(SourceTree::Table(params)),
        body: has_body.then_some(SourceTree::Table(body)),
        after: match (index, dice.below(3)) {
            (1.., 0) => vec![format!("r{}", dice.below(index))],
            _ => Vec::new(),
        },
        extra: [Some(Extra::Drop), Some(Extra::Reject), None][dice.below(3)],
        ..RouteSource::default()
    }
}

fn routes(dice: &mut Dice) -> Vec<Route> {
    let count = 2 + dice.below(4);
    let sources = (0..count).map(|index| full_form(index, dice));
    sources
        .filter_map(|source| parse_route(source).ok())
        .collect()
}

fn head<'s>(segments: &'s Segments<'s>, sent: &'s Sent) -> RestHead<'s> {
    RestHead {
        segments,
        query: sent.target.split_once('?').map(|(_, query)| query),
        headers: &sent.headers,
    }
}

fn path_of(sent: &Sent) -> &str {
    sent.target
        .split_once('?')
        .map_or(&sent.target, |(path, _)| path)
}

/// The route that a REST call gets.
fn taken(table: &RouteTable, method: &Method, sent: &Sent) -> Option<usize> {
    let segments = Segments::split(path_of(sent));
    let head = head(&segments, sent);
    match table.select_rest(method, &segments, head.query, head.headers) {
        RestSelection::Route(route) => Some(route),
        RestSelection::ByBody(group) => table.select_by_body(group, head, sent.body.as_ref()),
        RestSelection::OtherMethods(_)
        | RestSelection::OtherLiterals
        | RestSelection::Unrouted
        | RestSelection::Near(_) => None,
    }
}

/// Returns true when a REST call that has the path of a route fits it.
fn fits(route: &Route, sent: &Sent) -> bool {
    let segments = Segments::split(path_of(sent));
    read_rest(route, head(&segments, sent), TERMS)
        .and_then(|mut reading| read_body(route, sent.body.as_ref(), &mut reading))
        .is_ok()
}

fn name(table: &RouteTable, route: Option<usize>) -> Option<&str> {
    route.map(|route| table.route(route).name.as_str())
}

/// Returns whether a route is declared to come before another one.
fn is_before(table: &RouteTable, one: &Route, other: &Route) -> bool {
    let mut all = table.routes().iter();
    let index = all.position(|route| route.name == other.name).unwrap();
    let mut fronts = table.fronts(index).iter();
    fronts.any(|front| table.route(*front).name == one.name)
}

fn describe(table: &RouteTable) -> String {
    let routes = table.routes().iter();
    let lines = routes.map(|route| {
        let (body, params) = (&route.rest_call.body, &route.rpc_call.params);
        format!(
            "{}: {} {body:?} <-> {} {params:?} after {:?}",
            route.name, route.rest, route.rpc, route.after
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn selection_among_full_forms_does_not_depend_on_the_order_of_declaration(mut dice in thrown(60..200)) {
        let routes = routes(&mut dice);
        let mut turned = routes.clone();
        turned.reverse();
        let at = dice.below(turned.len().max(1)).min(turned.len());
        turned.rotate_left(at);
        let (one, other) = (RouteTable::build(routes.clone()), RouteTable::build(turned));
        prop_assert_eq!(one.is_ok(), other.is_ok());
        let (Ok(one), Ok(other)) = (one, other) else { return Ok(()) };
        for route in &routes {
            let sent = rest_call(route, &mut dice);
            let found = [&one, &other].map(|table| name(table, taken(table, &route.method, &sent)));
            prop_assert_eq!(found[0], found[1], "{:?}\n{}", sent, describe(&one));
            let (method, params) = rpc_call(route, &mut dice);
            let found = [&one, &other].map(|table| name(table, table.select_rpc(&method, Some(&params))));
            prop_assert_eq!(found[0], found[1], "{:?}\n{}", params, describe(&one));
        }
    }

    #[test]
    fn the_selected_route_is_the_most_specific_match(mut dice in thrown(60..200)) {
        let routes = routes(&mut dice);
        let Ok(table) = RouteTable::build(routes.clone()) else { return Ok(()) };
        for route in &routes {
            let sent = rest_call(route, &mut dice);
            let found = taken(&table, &route.method, &sent).map(|found| table.route(found));
            // The path chooses first; it is the same for those that are compared. `after` adds a route to those of another
            // path, but not the others of its own path.
            let segments = Segments::split(path_of(&sent));
            let candidates = table.candidates(&route.method, &segments).iter();
            let rivals = candidates.map(|rival| table.route(*rival)).filter(|rival| {
                found.is_some_and(|found| found.rest_call.path.segments == rival.rest_call.path.segments
                        && found.rest_call.path.verb == rival.rest_call.path.verb)
                    && fits(rival, &sent)
            });
            for rival in rivals {
                let found = found.unwrap();
                prop_assert!(fits(found, &sent), "{} does not fit {sent:?}\n{}", found.name, describe(&table));
                prop_assert!(
                    rival.name == found.name || is_before(&table, found, rival) || refines(found, rival, Side::Rest),
                    "{} is taken, and {} fits {sent:?}\n{}", found.name, rival.name, describe(&table)
                );
            }
            let (method, params) = rpc_call(route, &mut dice);
            let found = table.select_rpc(&method, Some(&params)).map(|found| table.route(found));
            for rival in table.routes() {
                if rival.rpc != method || read_rpc(rival, MethodCall::new(&method, Some(&params)), TERMS).is_err() {
                    continue;
                }
                let found = found.unwrap();
                prop_assert!(
                    rival.name == found.name || is_before(&table, found, rival) || refines(found, rival, Side::Rpc),
                    "{} is taken, and {} fits {params:?}\n{}", found.name, rival.name, describe(&table)
                );
            }
        }
    }

    #[test]
    fn a_route_takes_no_call_that_fits_one_in_front_of_it(mut dice in thrown(60..200)) {
        let routes = routes(&mut dice);
        let Ok(table) = RouteTable::build(routes.clone()) else { return Ok(()) };
        for route in &routes {
            let sent = rest_call(route, &mut dice);
            let segments = Segments::split(path_of(&sent));
            if let Some(found) = taken(&table, &route.method, &sent) {
                for front in table.fronts(found).iter().map(|front| table.route(*front)) {
                    let fits = front.method == route.method
                        && front.rest_call.path.fits(&segments)
                        && fits(front, &sent);
                    prop_assert!(!fits, "{} is in front of {}: {sent:?}\n{}", front.name, found, describe(&table));
                }
            }
            let (method, params) = rpc_call(route, &mut dice);
            let call = MethodCall::new(&method, Some(&params));
            if let Some(found) = table.select_rpc(&method, Some(&params)) {
                for front in table.fronts(found).iter().map(|front| table.route(*front)) {
                    let fits = front.has_rpc_method(&method) && read_rpc(front, call, TERMS).is_ok();
                    prop_assert!(!fits, "{} is in front of {}: {params:?}\n{}", front.name, found, describe(&table));
                }
            }
        }
    }

    #[test]
    fn a_call_that_is_written_for_a_route_is_the_call_of_no_other(mut dice in thrown(60..200)) {
        let routes = routes(&mut dice);
        let Ok(table) = RouteTable::build(routes.clone()) else { return Ok(()) };
        for route in &routes {
            let (method, params) = rpc_call(route, &mut dice);
            let Some(found) = table.select_rpc(&method, Some(&params)) else { continue };
            let Ok(written) = table.write_rest(found, MethodCall::new(&method, Some(&params)), TERMS) else { continue };
            let rest_call = &table.route(found).rest_call;
            if rest_call.has_one_target() {
                prop_assert_eq!(rest_call.path.literal(), Some(written.target.clone()));
            }
            let sent = Sent {
                target: written.target,
                headers: HeaderMap::from_iter(written.headers),
                body: written.body.map(|body| Json::parse(body.into_bytes(), 128).unwrap()),
            };
            let again = taken(&table, &table.route(found).method, &sent);
            // A path chooses first, so a query literal of a closer path may leave it to no route at all.
            prop_assert!(
                // A route that is entered from the other side only stands for its twin.
                again.is_none_or(|again| again == found || !table.route(found).enters_from(Side::Rest)),
                "{:?} of {} became {:?}, taken for {:?}\n{}", params, table.route(found).name, sent, name(&table, again), describe(&table)
            );
        }
    }

    #[test]
    fn no_call_makes_a_table_panic(
        mut dice in thrown(60..200),
        target in "/[ab]?[ -~é\u{0}]{0,20}",
        body in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let Ok(table) = RouteTable::build(routes(&mut dice)) else { return Ok(()) };
        let body = Json::parse(Bytes::from(body), 128).ok();
        let sent = Sent { target, headers: HeaderMap::new(), body };
        for method in [Method::GET, Method::POST, Method::HEAD, Method::PUT] {
            let _ = taken(&table, &method, &sent);
        }
        let _ = table.select_rpc("m", sent.body.as_ref());
    }
}
