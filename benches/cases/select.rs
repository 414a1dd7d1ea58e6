//! Which route a call belongs to, in a table of as many routes as the size says: every one of them is asked for once.

use std::cell::Cell;
use std::hint::black_box;

use bytes::Bytes;
use dualgauge_model::route::{RestSelection, RouteSource, RouteTable, Segments, parse_route};
use dualgauge_patterns::json::Json;
use http::{HeaderMap, Method};

use super::Case;
use super::shapes::tree;

pub(super) fn case(name: &str, size: usize) -> Option<Case> {
    Some(match name {
        "matchit" => matchit(size),
        "select rest" => select_rest(size),
        "select rpc" => select_rpc(size),
        "select tool" => select_tool(size),
        _ => return None,
    })
}

/// Method, template, query and a path, as real APIs have them: a resource, one of its members, and what it has.
fn operation(index: usize) -> (&'static str, String, &'static str, String) {
    let base = format!("/api/v1/resource{}", index / 4);
    match index % 4 {
        0 => ("GET", base.clone(), "?limit={limit:integer=50}", base),
        1 => ("POST", base.clone(), "", base),
        2 => ("GET", format!("{base}/{{id}}"), "", format!("{base}/7")),
        _ => (
            "POST",
            format!("{base}/{{id}}/runs"),
            "",
            format!("{base}/7/runs"),
        ),
    }
}

fn table(size: usize) -> RouteTable {
    let routes = (0..size).map(|index| {
        let (method, template, query, _) = operation(index);
        let source = RouteSource {
            name: format!("r{index}"),
            rest: format!("{method} {template}{query}"),
            rpc: format!("m/{index}"),
            ..RouteSource::default()
        };
        parse_route(source).expect("the pattern is well-formed")
    });
    RouteTable::build(routes.collect()).expect("the routes are told apart")
}

/// All of these in turn, one with each run.
fn in_turn<T: 'static>(asked: Vec<T>, ask: impl Fn(&T) -> usize + 'static) -> Case {
    let next = Cell::new(0);
    Box::new(move || {
        let at = next.get();
        next.set(if at + 1 == asked.len() { 0 } else { at + 1 });
        ask(black_box(&asked[at]))
    })
}

fn matchit(size: usize) -> Case {
    let mut router = matchit::Router::new();
    for index in 0..size {
        // It knows no methods, so two operations of one path are one route.
        let known = router.insert(operation(index).1, index);
        assert!(known.is_ok() || index % 4 == 1, "{known:?}");
    }
    let paths = (0..size).map(|index| operation(index).3).collect();
    in_turn(paths, move |path: &String| {
        let found = router.at(path).expect("the path is known");
        *found.value
    })
}

fn select_rest(size: usize) -> Case {
    let (table, headers) = (table(size), HeaderMap::new());
    let calls = (0..size).map(|index| {
        let (method, _, _, path) = operation(index);
        (method.parse::<Method>().expect("it is a method"), path)
    });
    in_turn(calls.collect(), move |(method, path)| {
        let segments = Segments::split(path);
        let selected = table.select_rest(method, &segments, None, &headers);
        let RestSelection::Route(route) = selected else {
            unreachable!("{selected:?}");
        };
        route
    })
}

fn select_rpc(size: usize) -> Case {
    let table = table(size);
    let methods = (0..size).map(|index| format!("m/{index}")).collect();
    in_turn(methods, move |method: &String| {
        table.select_rpc(method, None).expect("the method is known")
    })
}

fn select_tool(size: usize) -> Case {
    let routes = (0..size).map(|index| {
        let params = format!(r#"{{"name":"tool_{index}","arguments":{{"id":"{{id}}"}}}}"#);
        let source = RouteSource {
            name: format!("r{index}"),
            rest: format!("GET /tools/tool_{index}/{{id}}"),
            rpc: "tools/call".into(),
            params: Some(tree(&params)),
            ..RouteSource::default()
        };
        parse_route(source).expect("the pattern is well-formed")
    });
    let table = RouteTable::build(routes.collect()).expect("the routes are told apart");
    let params = (0..size).map(|index| {
        let text = format!(r#"{{"name":"tool_{index}","arguments":{{"id":"seven"}}}}"#);
        Json::parse(Bytes::from(text), 128).expect("the text is JSON")
    });
    in_turn(params.collect(), move |params| {
        let found = table.select_rpc("tools/call", Some(params));
        found.expect("the tool is known")
    })
}
