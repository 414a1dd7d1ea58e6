//! The declared order of routes.

use super::*;
use crate::translate::RestHead;
use dualgauge_patterns::pattern::SourceTree;

/// A route with named params, each from the hole of its name, and the routes that it comes after.
struct Row {
    rest: &'static str,
    rpc: &'static str,
    params: &'static [(&'static str, &'static str)],
    body: &'static [(&'static str, &'static str)],
    after: &'static [&'static str],
}

const ROW: Row = Row {
    rest: "GET /",
    rpc: "m",
    params: &[],
    body: &[],
    after: &[],
};

fn tree(members: &[(&str, &str)]) -> SourceTree {
    let members = members.iter();
    SourceTree::Table(
        members
            .map(|(name, text)| ((*name).to_owned(), SourceTree::Text((*text).to_owned())))
            .collect(),
    )
}

fn routes(rows: &[Row]) -> Vec<Route> {
    let sources = rows.iter().enumerate().map(|(index, row)| RouteSource {
        name: format!("r{index}"),
        rest: row.rest.to_owned(),
        rpc: row.rpc.to_owned(),
        params: Some(tree(row.params)),
        body: (!row.body.is_empty()).then(|| tree(row.body)),
        after: row.after.iter().map(|name| (*name).to_owned()).collect(),
        ..RouteSource::default()
    });
    sources.map(|source| parse_route(source).unwrap()).collect()
}

fn built(rows: &[Row]) -> Result<RouteTable, Vec<String>> {
    RouteTable::build(routes(rows))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn posted(table: &RouteTable, path: &str, body: &'static str) -> Option<String> {
    let segments = Segments::split(path);
    let head = RestHead {
        segments: &segments,
        query: None,
        headers: &HeaderMap::new(),
    };
    let found = match table.select_rest(&Method::POST, &segments, None, head.headers) {
        RestSelection::Route(route) => Some(route),
        RestSelection::ByBody(group) => {
            table.select_by_body(group, head, Some(&Json::literal(body)))
        }
        RestSelection::OtherMethods(_)
        | RestSelection::OtherLiterals
        | RestSelection::Unrouted
        | RestSelection::Near(_) => None,
    };
    found.map(|route| table.route(route).name.clone())
}

fn called(table: &RouteTable, method: &str, params: &'static str) -> String {
    let params = Json::literal(params);
    let found = table.select_rpc(method, Some(&params)).unwrap();
    table.route(found).name.clone()
}

/// A call to any method of a model, behind a special one.
const GENERIC: [Row; 2] = [
    Row {
        rest: "POST /json/2/{model}/read",
        rpc: "execute",
        params: &[
            ("model", "{model}"),
            ("method", "read"),
            ("ids", "{ids:integer[]}"),
        ],
        body: &[("ids", "{ids}")],
        ..ROW
    },
    Row {
        rest: "POST /json/2/{model}/{method}",
        rpc: "execute",
        params: &[
            ("model", "{model}"),
            ("method", "{method}"),
            ("...", "{more}"),
        ],
        body: &[("...", "{more}")],
        after: &["r0"],
    },
];

#[test]
fn a_generic_route_takes_what_the_special_one_does_not_fit() {
    let table = built(&GENERIC).unwrap();
    let posted = |path, body| posted(&table, path, body).unwrap();
    assert_eq!(posted("/json/2/partner/read", r#"{"ids":[1]}"#), "r0");
    assert_eq!(posted("/json/2/partner/read", r#"{"domain":[]}"#), "r1");
    assert_eq!(posted("/json/2/partner/write", r#"{"ids":[1]}"#), "r1");
    let called = |params| called(&table, "execute", params);
    assert_eq!(called(r#"{"model":"p","method":"read","ids":[1]}"#), "r0");
    assert_eq!(called(r#"{"model":"p","method":"read","domain":[]}"#), "r1");
    assert_eq!(called(r#"{"model":"p","method":"write","ids":[1]}"#), "r1");
}

#[test]
fn a_literal_method_leaves_other_params_to_a_generic_one_behind_it() {
    let mut rows = GENERIC;
    rows[0].rpc = "p.read";
    rows[0].params = &[("model", "{model}"), ("ids", "{ids:integer[]}")];
    rows[1].rpc = "p.{method}";
    rows[1].params = &[("model", "{model}"), ("...", "{more}")];
    let table = built(&rows).unwrap();
    assert_eq!(called(&table, "p.read", r#"{"model":"p","ids":[1]}"#), "r0");
    assert_eq!(
        called(&table, "p.read", r#"{"model":"p","domain":[]}"#),
        "r1"
    );
    assert_eq!(
        called(&table, "p.write", r#"{"model":"p","ids":[1]}"#),
        "r1"
    );
}

#[test]
fn a_call_that_a_route_in_front_would_take_is_not_written() {
    let mut rows = GENERIC;
    rows[0].rpc = "read";
    rows[0].params = &[("model", "{model}"), ("ids", "{ids:integer[]}")];
    let table = built(&rows).unwrap();
    let write = |params: &'static str| {
        let params = Json::literal(params);
        let call = MethodCall::new("execute", Some(&params));
        let written = table.write_rest(1, call, TERMS);
        written
            .map(|written| written.target)
            .map_err(|error| error.to_string())
    };
    let taken = write(r#"{"model":"p","method":"read","ids":[1]}"#);
    assert_eq!(
        taken.unwrap_err(),
        "params: these values select the route `r0`"
    );
    let free = write(r#"{"model":"p","method":"read","domain":[]}"#);
    assert_eq!(free.unwrap(), "/json/2/p/read");
}

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

#[test]
fn texts_that_overlap_in_part_may_be_ordered_either_way() {
    let row = |rest, params, after| Row {
        rest,
        params,
        after,
        ..ROW
    };
    let json = |after| row("GET /b/{x}.json", &[("x", "{x}")], after);
    let tx = |after| Row {
        rpc: "n",
        ..row("GET /b/tx{x}", &[("x", "{x}")], after)
    };
    for (rows, taken) in [
        ([json(&[]), tx(&["r0"])], "r0"),
        ([json(&["r1"]), tx(&[])], "r1"),
    ] {
        let table = built(&rows).unwrap();
        assert_eq!(selected(&table, "GET /b/tx1.json"), taken);
        assert_eq!(selected(&table, "GET /b/a.json"), "r0");
        assert_eq!(selected(&table, "GET /b/tx1"), "r1");
        assert_eq!(selected(&table, "GET /b/a"), "unrouted");
    }
}

#[test]
fn a_partial_overlap_on_one_path_may_be_ordered() {
    let row = |rest, rpc, after| Row {
        rest,
        rpc,
        params: &[("a", "{a}"), ("b", "{b}")],
        after,
        ..ROW
    };
    let rows = |after| {
        [
            row("GET /s?a={a:integer}&b={b?}", "m", &[][..]),
            row("GET /s?a={a?}&b={b:integer}", "n", after),
        ]
    };
    assert!(built(&rows(&[])).unwrap_err()[0].contains("order them by `after`"));
    let table = built(&rows(&["r0"])).unwrap();
    assert_eq!(selected(&table, "GET /s?a=1&b=2"), "r0");
    assert_eq!(selected(&table, "GET /s?a=x&b=2"), "r1");
    assert_eq!(selected(&table, "GET /s?b=2"), "r1");
}

#[test]
fn an_order_that_cannot_be_kept_is_refused() {
    let row = |rest, rpc, after| Row {
        rest,
        rpc,
        after,
        ..ROW
    };
    for (rows, words) in [
        (
            vec![row("GET /a", "a", &["x"])],
            "no route has the name `x`",
        ),
        (
            vec![row("GET /a", "a", &["r0"])],
            "the order has a cycle: `r0` after `r0`",
        ),
        (
            vec![
                row("GET /a", "a", &["r2"]),
                row("GET /b", "b", &["r0"]),
                row("GET /c", "c", &["r1"]),
            ],
            "the order has a cycle: `r0` after `r2` after `r1` after `r0`",
        ),
        (
            vec![
                Row {
                    params: &[("x", "{x}")],
                    ..row("GET /{x}", "a", &[])
                },
                row("GET /a", "b", &["r0"]),
            ],
            "every rest call of this route fits the route `r0`, which comes first",
        ),
    ] {
        let errors = built(&rows).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains(words), "{errors:?}");
    }
    // Without calls in common, an order has no effect.
    built(&[row("GET /a", "a", &[]), row("GET /b", "b", &["r0"])]).unwrap();
}

/// A route whose params have several forms, all with a literal service.
fn with_forms(name: &str, service: &str) -> Route {
    let form = |more: &'static str| {
        let text = |name: &str, text: &str| (name.to_owned(), SourceTree::Text(text.to_owned()));
        SourceTree::Table(vec![text("service", service), text(more, "{x}")])
    };
    let forms = [SourceTree::Text("{/}".to_owned()), form("a"), form("b")];
    let source = RouteSource {
        params: Some(SourceTree::List(forms.into())),
        ..source(name, &format!("POST /{name}/{{x}}"), "call")
    };
    parse_route(source).unwrap()
}

#[test]
fn a_literal_of_all_forms_excludes_a_route() {
    let services = ["object", "common"];
    let routes = services.map(|service| with_forms(service, service));
    let table = RouteTable::build(routes.into()).unwrap();
    let taken = |params: &'static str| {
        let params = Json::literal(params);
        let found = table.select_rpc("call", Some(&params));
        found.map(|route| table.route(route).name.clone())
    };
    for service in services {
        let name = Some(service.to_owned());
        for params in [
            r#"{"service":"SERVICE","b":"1"}"#,
            r#"{"service":"SERVICE","c":1}"#,
        ] {
            let params: &'static str = params.replace("SERVICE", service).leak();
            assert_eq!(taken(params), name, "{params}");
        }
    }
    assert_eq!(taken(r#"{"service":"db","a":"1"}"#), None);
    assert_eq!(taken("{}"), None);
}

#[test]
fn a_body_without_the_literal_of_any_form_has_no_route() {
    let form = |value: &str| {
        let member = ("kind".to_owned(), SourceTree::Text(value.to_owned()));
        SourceTree::Table(vec![member])
    };
    let posted_to = |forms: [&str; 2], body| {
        let [one, other] = forms.map(form);
        let tree = SourceTree::List(vec![SourceTree::Text("{|}".to_owned()), one, other]);
        let source = RouteSource {
            params: Some(tree.clone()),
            body: Some(tree),
            ..source("r0", "POST /a", "m")
        };
        let table = RouteTable::build(vec![parse_route(source).unwrap()]).unwrap();
        posted(&table, "/a", body)
    };
    let taken = Some("r0".to_owned());
    assert_eq!(posted_to(["a", "b"], r#"{"kind":"b"}"#), taken);
    assert_eq!(posted_to(["a", "b"], r#"{"kind":"c"}"#), None);
    assert_eq!(posted_to(["a", "{x}"], r#"{"kind":1}"#), taken);
}

#[test]
fn the_nearest_route_is_one_whose_path_fits() {
    let table = table(&[
        ("GET /{s:enum(nfs|smb)}", "{s}.config"),
        ("GET /{s:enum(pool|user)}?limit={limit?}", "{s}.query"),
        ("GET /{s:enum(pool|user)}?id={id}", "{s}.get"),
    ])
    .unwrap();
    assert_eq!(selected(&table, "GET /nfs?x=1"), "r0");
    assert_eq!(selected(&table, "GET /nfs?limit=1"), "r0");
    assert_eq!(selected(&table, "GET /pool?x=1"), "r1");
    assert_eq!(selected(&table, "GET /pool?limit=1&x=1"), "r1");
    assert_eq!(selected(&table, "GET /pool?id=1&x=1"), "r2");
}

#[test]
fn a_route_without_a_required_name_is_nearer_than_one_whose_name_is_missing() {
    let table = table(&[
        ("GET /pool", "query"),
        ("GET /pool?id={id}", "by_id"),
        ("GET /pool?name={name}&kind={kind}", "by_name"),
    ])
    .unwrap();
    // The message names `name__contains`, not the `id` that the call needs as little as `name`.
    assert_eq!(selected(&table, "GET /pool?name__contains=a"), "r0");
    assert_eq!(selected(&table, "GET /pool?id=1&x=1"), "r1");
    assert_eq!(selected(&table, "GET /pool?kind=a&x=1"), "r2");
}

#[test]
fn an_order_brings_no_other_route_of_the_path_along() {
    let wide = Row {
        rest: "POST /a/{x=**}",
        ..ROW
    };
    let table = built(&[
        Row {
            rest: "POST /a/{x}?k={k}",
            params: &[("x", "{x}"), ("k", "{k}")],
            ..ROW
        },
        Row {
            rpc: "n",
            params: &[("x", "{x}"), ("b", "{b}"), ("c", "{c}")],
            body: &[("b", "{b}"), ("c", "{c}")],
            ..wide
        },
        Row {
            params: &[("x", "{x}"), ("c", "{c}")],
            body: &[("c", "{c}")],
            after: &["r0"],
            ..wide
        },
    ])
    .unwrap();
    let taken = |path, body| posted(&table, path, body).unwrap();
    assert_eq!(taken("/a/x/y", r#"{"b":1,"c":1}"#), "r1");
    assert_eq!(taken("/a/x/y", r#"{"c":1}"#), "r2");
    // The path of `r0` is the closer one, and only `r2` is ordered after it.
    assert_eq!(taken("/a/x", r#"{"c":1}"#), "r2");
    assert_ne!(taken("/a/x", r#"{"b":1,"c":1}"#), "r1");
    assert_eq!(
        table.candidates(&Method::POST, &Segments::split("/a/x")),
        [0, 2]
    );
}
