mod affinity;
mod after;
mod beside_text;
mod full;
mod laws;
mod lists;

use http::{HeaderMap, Method};
use proptest::prelude::*;

use super::*;
use crate::translate::{MethodCall, TranslateContext, rpc_to_rest};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{PatternReader, PatternWriter, UnknownMembers, WriteScope};
use dualgauge_patterns::rope::RopeWriter;
use dualgauge_patterns::side::Side;

fn source(name: &str, rest: &str, rpc: &str) -> RouteSource {
    RouteSource {
        name: name.into(),
        rest: rest.into(),
        rpc: rpc.into(),
        ..RouteSource::default()
    }
}

fn table(rows: &[(&str, &str)]) -> Result<RouteTable, Vec<String>> {
    let named = |(index, (rest, rpc)): (usize, &(&str, &str))| {
        parse_route(source(&format!("r{index}"), rest, rpc)).unwrap()
    };
    let routes = rows.iter().enumerate().map(named).collect();
    RouteTable::build(routes).map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// The pattern that a request gets, or what stands in its place.
fn selected(table: &RouteTable, request: &str) -> String {
    let (method, url) = request.split_once(' ').unwrap();
    let (path, query) = url
        .split_once('?')
        .map_or((url, None), |(path, query)| (path, Some(query)));
    match table.select_rest(
        &method.parse().unwrap(),
        &Segments::split(path),
        query,
        &HeaderMap::new(),
    ) {
        RestSelection::Route(index) => table.route(index).name.clone(),
        RestSelection::ByBody(group) => format!("by body: {:?}", group.routes()),
        RestSelection::OtherMethods(methods) => format!("{methods:?}"),
        RestSelection::OtherLiterals => "other literals".into(),
        RestSelection::Unrouted => "unrouted".into(),
        RestSelection::Near(near) => format!("near: {:?}", near.routes),
    }
}

fn read(rest: &str, url: &str) -> Result<String, String> {
    let route = parse_route(source("r", rest, "m")).unwrap();
    let (path, query) = url
        .split_once('?')
        .map_or((url, None), |(path, query)| (path, Some(query)));
    let query = Query::parse(query).map_err(|error| error.to_string())?;
    let mut reading = reading(&route);
    read_url(&route, &Segments::split(path), &query, &mut reading)
        .map_err(|error| error.to_string())?;
    Ok(params(&route, &reading))
}

fn reading(route: &Route) -> PatternReader {
    PatternReader::new(route.facts.holes.len(), UnknownMembers::Dropped, 128)
}

fn writing(reading: &PatternReader) -> PatternWriter<'_> {
    PatternWriter::new(WriteScope {
        bindings: &reading.bindings,
        call: None,
        now: String::new,
    })
}

/// The members of params that a URL makes.
fn params(route: &Route, reading: &PatternReader) -> String {
    let mut out = RopeWriter::with_capacity(64);
    route
        .rpc_call
        .params
        .write(&writing(reading), &mut out)
        .unwrap();
    let text = String::from_utf8(out.finish().into_bytes().to_vec()).unwrap();
    text[1..text.len() - 1].to_owned()
}

fn write(rest: &str, members: &[(&str, &str)]) -> Result<String, String> {
    let route = parse_route(source("r", rest, "m")).unwrap();
    let members = members
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"));
    written(
        &route,
        &format!("{{{}}}", members.collect::<Vec<_>>().join(",")),
    )
}

fn written(route: &Route, params: &str) -> Result<String, String> {
    let params = Json::parse(params.to_owned().into(), 8).unwrap();
    let context = TranslateContext {
        depth: 8,
        now: String::new,
    };
    rpc_to_rest(route, MethodCall::new("m", Some(&params)), context)
        .map(|call| call.target)
        .map_err(|error| error.to_string())
}

#[test]
fn literals_beat_holes_and_longer_beats_shorter() {
    let table = table(&[
        ("GET /a/{x}", "m0"),
        ("GET /a/b", "m1"),
        ("GET /a/{x}/c", "m2"),
        ("GET /a/{x=**}", "m3"),
        ("POST /a/b", "m4"),
        ("POST /a/{x}:run", "m5"),
        ("POST /a/{x}", "m6"),
        ("GET /", "m7"),
    ])
    .unwrap();
    for (request, route) in [
        ("GET /a/b", "r1"),
        ("GET /a/z", "r0"),
        ("GET /a/b/c", "r2"),
        ("GET /a/b/d", "r3"),
        ("GET /a", "r3"),
        ("POST /a/b", "r4"),
        ("POST /a/b:run", "r5"),
        ("POST /a/b:walk", "r6"),
        ("POST /a/b%3Arun", "r6"),
        ("HEAD /a/b", "r1"),
        ("GET /%61/%62", "r1"),
        ("GET /", "r7"),
        ("GET /z", "unrouted"),
        ("DELETE /a/b", "[GET, POST]"),
    ] {
        assert_eq!(selected(&table, request), route, "{request}");
    }
}

#[test]
fn a_path_that_names_a_route_only_after_tidying_is_near_it() {
    let table = table(&[("GET /a/{x}", "m0"), ("POST /run", "m1")]).unwrap();
    for request in [
        "GET /a//b",
        "GET /a/b/",
        "GET /a/./b",
        "GET /z/../a/b",
        "GET /z/%2e%2E/a/b",
        "POST //run",
        "POST /run/",
    ] {
        assert!(selected(&table, request).starts_with("near"), "{request}");
    }
    for request in ["GET /b//c", "GET /a/b/../../z", "GET //"] {
        assert_eq!(selected(&table, request), "unrouted", "{request}");
    }
}

#[test]
fn siblings_are_distinguished_by_the_names_they_require() {
    let table = table(&[
        ("DELETE /s?id={id}", "one"),
        ("DELETE /s", "all"),
        ("GET /s?kind=a&n={n:integer}", "a"),
        ("GET /s?kind=b&n={n}", "b"),
        ("GET /t/{x}", "text"),
        ("GET /t/{x:integer}", "number"),
    ])
    .unwrap();
    for (request, route) in [
        ("DELETE /s?id=7", "r0"),
        ("DELETE /s", "r1"),
        // Nothing fits, so that the nearest one says what is wrong.
        ("DELETE /s?other=1", "r1"),
        // An empty id is the error of the route with the id, never "delete all".
        ("DELETE /s?id=", "r0"),
        ("GET /s?kind=a&n=1", "r2"),
        ("GET /s?n=1&kind=b", "r3"),
        ("GET /t/7", "r5"),
        ("GET /t/seven", "r4"),
    ] {
        assert_eq!(selected(&table, request), route, "{request}");
    }
}

#[test]
fn routes_that_share_calls_without_one_being_more_specific_cannot_be_loaded() {
    let both = |one: &'static str, other: &'static str| table(&[(one, "m0"), (other, "m1")]);
    for (one, other) in [
        ("GET /a/{x}", "GET /a/{y}"),
        ("GET /a?x={x?}", "GET /a?y={y?}"),
        ("GET /a?x={x}&y={y?}", "GET /a?x={x?}&y={y}"),
        ("GET /a?x={x:enum(a|b)}", "GET /a?x={x:enum(b|c)}"),
    ] {
        let words = both(one, other).unwrap_err();
        assert!(
            words[0].contains("shares calls with the route `r0`"),
            "{one} {other}: {words:?}"
        );
    }
    for (one, other) in [
        ("GET /a?x={x}", "GET /a?y={y}"),
        ("GET /a?x={x:integer}", "GET /a?x={x}"),
        ("GET /a?x={x:enum(a|b)}", "GET /a?x={x:enum(c|d)}"),
        ("GET /a?x={x:enum(a|b)}", "GET /a?x={x:enum(a|b|c)}"),
        ("GET /a?x=1", "GET /a?x={x}"),
        ("GET /a?x={x}", "GET /a?x={x?}"),
    ] {
        assert!(both(one, other).is_ok(), "{one} {other}");
    }
    // The RPC side sees JSON: a number is no string there, and a literal of the URL is not there at all.
    assert!(table(&[("GET /a?x={x:integer}", "m"), ("GET /b?x={x}", "m")]).is_ok());
    assert!(table(&[("GET /a?k=1&x={x}", "m"), ("GET /a?k=2&x={x}", "m")]).is_err());
    assert!(table(&[("POST /a", "m"), ("POST /b", "m")]).is_err());
    assert!(table(&[("POST /a", "m"), ("GET /b/{id}", "m")]).is_ok());
}

#[test]
fn a_route_that_means_nothing_is_refused_with_the_key() {
    for (rest, rpc, key, words) in [
        ("GET", "m", "rest", "one space and a path"),
        ("get /a", "m", "rest", "case-sensitive"),
        ("CONNECT /a", "m", "rest", "tunnel"),
        ("GET a", "m", "rest", "must begin with `/`"),
        ("GET /a//b", "m", "rest", "may be empty"),
        ("GET /a/../b", "m", "rest", "distinguished from an absent"),
        ("GET /{x=**}/b", "m", "rest", "may follow `**`"),
        ("GET /{x?}", "m", "rest", "cannot be absent"),
        ("GET /{x}?x={x:integer[]}", "m", "rest", "is a list"),
        ("GET /{_}", "m", "rest", "name the hole"),
        ("GET /a?x={x}&x={y}", "m", "rest", "given twice"),
        ("GET /a?x", "m", "rest", "`key={hole}`"),
        ("GET /{x}{y}.a", "m", "rest", "touches the one before"),
        ("GET /a%zz{x}", "m", "rest", "two hexadecimal digits"),
        ("GET /{x:string[,]}.a", "m", "rest", "is a list"),
        ("GET /a/{x:json}", "m", "rest", "a path cannot contain JSON"),
        ("GET /a", "", "rpc", "empty"),
        ("GET /a", "{tool}", "rpc", "on the rpc side only"),
        ("GET /a/{x}", "a/{_}", "rpc", "has no value to write"),
    ] {
        let error = parse_route(source("r", rest, rpc)).unwrap_err().remove(0);
        let (found, error) = (error.key, error.what);
        assert_eq!(found, key);
        assert!(error.to_string().contains(words), "{rest}: {error}");
    }
}

#[test]
fn a_url_is_read_by_the_rules_of_transcoding() {
    for (rest, url, members) in [
        ("GET /a/{x}", "/a/b%2Fc+d", r#""x":"b/c+d""#),
        ("GET /a/{x:integer}", "/a/7", r#""x":7"#),
        ("GET /{x=items/*}", "/items/7", r#""x":"items/7""#),
        ("GET /f/{x=**}", "/f/a/b%20c", r#""x":"a/b c""#),
        ("GET /f/{x=**}:get", "/f/a/b:get", r#""x":"a/b""#),
        ("GET /f/{x}:get", "/f/a%3Ab:get", r#""x":"a:b""#),
        (
            "GET /s?q={query}&n={n:integer=50}",
            "/s?q=a+b%2Bc",
            r#""query":"a b+c","n":50"#,
        ),
        (
            "GET /s?q={q?}&e={e:string[,]?}",
            "/s?e=go,js",
            r#""e":["go","js"]"#,
        ),
        ("GET /s?t={t:string[]}", "/s?t=a&t=b", r#""t":["a","b"]"#),
    ] {
        assert_eq!(read(rest, url).unwrap(), members, "{rest} {url}");
    }
    for (rest, url, words) in [
        (
            "GET /a/{x}",
            "/a/%2e%2e%2fb",
            "path parameter `x`: `.` and `..` are refused in a path",
        ),
        (
            "GET /a/{x}",
            "/a/b%00",
            "path parameter `x`: `\\u{0}` is refused in a path",
        ),
        (
            "GET /a/{x}",
            "/a/b%5cc",
            "path parameter `x`: `\\\\` is refused in a path",
        ),
        (
            "GET /a/{x}",
            "/a/%zz",
            "path parameter `x`: `%` must be followed by two hexadecimal digits",
        ),
        (
            "GET /f/{x=**}",
            "/f/a%2fb/c",
            "cannot be distinguished from a slash",
        ),
        (
            "GET /f/{x=**}",
            "/f",
            "path parameter `x`: it must not be empty",
        ),
        (
            "GET /s?q={q}",
            "/s?q=%ff",
            "query parameter `q`: the decoded bytes are not valid UTF-8",
        ),
        (
            "GET /s?q={q}",
            "/s?q=100%",
            "query parameter `q`: `%` must be followed",
        ),
        ("GET /s?q={q}", "/s", "query parameter `q`: it is required"),
        (
            "GET /s?q={q}",
            "/s?q=1&q=2",
            "query parameter `q`: it is given more than once",
        ),
        (
            "GET /s?k=1",
            "/s?k=2",
            "query parameter `k`: it must be `1`, once",
        ),
        ("GET /s?q={q}", "/s?%zz=1", "a name in the query"),
    ] {
        let error = read(rest, url).unwrap_err();
        assert!(error.contains(words), "{rest} {url}: {error}");
    }
}

#[test]
fn values_in_a_url_are_escaped() {
    for (rest, members, target) in [
        (
            "GET /a/{x}/c",
            vec![("x", r#""b/c?d=e&f:g""#)],
            "/a/b%2Fc%3Fd%3De%26f%3Ag/c",
        ),
        ("GET /{x=items/*}", vec![("x", r#""items/7""#)], "/items/7"),
        (
            "GET /f/{x=**}:get",
            vec![("x", r#""a/b c""#)],
            "/f/a/b%20c:get",
        ),
        (
            "GET /s?q={query}&n={n:integer?=50}",
            vec![("query", r#""a b""#), ("n", "50")],
            "/s?q=a%20b",
        ),
        (
            "GET /s?e={e:string[]?}",
            vec![("e", r#"["a","b"]"#)],
            "/s?e=a&e=b",
        ),
        ("GET /s?kind=a", vec![], "/s?kind=a"),
        ("GET /", vec![], "/"),
    ] {
        assert_eq!(write(rest, &members).unwrap(), target, "{rest}");
    }
    for (rest, value, words) in [
        ("GET /a/{x}", r#""..""#, "`.` and `..` are refused"),
        ("GET /a/{x}", r#""""#, "must not be empty"),
        (
            "GET /{x=items/*}",
            r#""orders/7""#,
            "must have the form `items/*`",
        ),
        (
            "GET /{x=items/*}",
            r#""items/7/8""#,
            "must have the form `items/*`",
        ),
        (
            "GET /{x=items/*}",
            r#""items/../x""#,
            "`.` and `..` are refused",
        ),
        ("GET /f/{x=**}", r#""a//b""#, "an empty segment"),
    ] {
        let error = write(rest, &[("x", value)]).unwrap_err();
        assert!(
            error.starts_with("params/x: ") && error.contains(words),
            "{rest} {value}: {error}"
        );
    }
}

fn any_route() -> impl Strategy<Value = String> {
    let hole = |name: &'static str| {
        prop_oneof![
            Just(format!("{{{name}}}")),
            Just(format!("{{{name}?}}")),
            Just(format!("{{{name}:integer}}")),
            Just(format!("{{{name}:enum(a|b)?}}")),
            Just("lit".to_owned()),
        ]
    };
    let query = proptest::sample::subsequence(vec!["x", "y", "z"], 0..=3);
    (query, hole("x"), hole("y"), hole("z")).prop_map(|(names, x, y, z)| {
        let pairs = names.iter().map(|name| {
            let value = match *name {
                "x" => &x,
                "y" => &y,
                _ => &z,
            };
            format!("{name}={value}")
        });
        format!("GET /p?{}", pairs.collect::<Vec<_>>().join("&"))
            .trim_end_matches('?')
            .to_owned()
    })
}

#[test]
fn a_repeated_hole_is_more_specific_than_two_holes() {
    let twice = parse_route(source("a", "GET /p/{x}?y={x}", "m")).unwrap();
    let apart = parse_route(source("b", "GET /p/{x}?y={y}", "n")).unwrap();
    assert!(specificity::refines(&twice, &twice, Side::Rest));
    assert!(specificity::refines(&twice, &apart, Side::Rest));
    assert!(!specificity::refines(&apart, &twice, Side::Rest));
}

proptest! {
    #[test]
    fn selection_does_not_depend_on_the_order_of_declaration(
        routes in proptest::collection::vec(any_route(), 1..5),
        query in "(x=(a|7|lit|)&?)?(y=(a|7|lit)&?)?(z=(b|7))?",
        seed in any::<prop::sample::Index>(),
    ) {
        let build = |order: &[usize]| {
            let routes = order.iter().map(|index| {
                parse_route(source(&format!("n{index}"), &routes[*index], &format!("m{index}"))).unwrap()
            });
            RouteTable::build(routes.collect())
        };
        let straight: Vec<usize> = (0..routes.len()).collect();
        let mut turned = straight.clone();
        turned.rotate_left(seed.index(routes.len()));
        turned.reverse();
        let request = format!("GET /p?{query}");
        match (build(&straight), build(&turned)) {
            (Ok(one), Ok(other)) => prop_assert_eq!(selected(&one, &request), selected(&other, &request)),
            (one, other) => prop_assert_eq!(one.is_err(), other.is_err()),
        }
    }

    #[test]
    fn at_most_one_route_matches_or_the_most_specific_wins(
        one in any_route(), other in any_route(), query in "(x=(a|7|lit)&)?(y=(a|7|lit)&)?(z=(b|7))?",
    ) {
        let Ok(table) = table(&[(&one, "m0"), (&other, "m1")]) else { return Ok(()) };
        let fits = |index: usize| {
            let query = Query::parse(Some(&query)).unwrap();
            read_url(table.route(index), &Segments::split("/p"), &query, &mut reading(table.route(index))).is_ok()
        };
        let selected = table.select_rest(&Method::GET, &Segments::split("/p"), Some(&query), &HeaderMap::new());
        let RestSelection::Route(taken) = selected else {
            // A literal of each is missing.
            prop_assert!(matches!(selected, RestSelection::OtherLiterals));
            prop_assert!(!fits(0) && !fits(1));
            return Ok(());
        };
        if fits(0) || fits(1) {
            prop_assert!(fits(taken));
        }
        if fits(0) && fits(1) {
            prop_assert!(specificity::refines(table.route(taken), table.route(1 - taken), Side::Rest));
        }
    }

    #[test]
    fn a_written_url_is_read_back(x in "[^\\p{C}\\\\]{1,12}", n in "-?(0|[1-9][0-9]{0,30})", tags in proptest::collection::vec("[^\\p{C}]{0,6}", 1..4)) {
        prop_assume!(!x.split('/').any(|segment| segment == "." || segment == ".."));
        let rest = "GET /a/{x}/b?n={n:integer}&t={t:string[]}";
        let route = parse_route(source("r", rest, "m")).unwrap();
        let (x, n) = (serde_json::to_string(&x).unwrap(), n);
        let tags = serde_json::to_string(&tags).unwrap();
        let target = written(&route, &format!(r#"{{"t":{tags},"n":{n},"x":{x}}}"#)).unwrap();
        prop_assert_eq!(read(rest, &target).unwrap(), format!(r#""x":{x},"n":{n},"t":{tags}"#));
        prop_assert!(target.parse::<http::Uri>().is_ok());
    }

    #[test]
    fn no_text_makes_it_panic(rest in "[A-Z]{1,4} /[{}a-z:?=&|*/.%,\\[\\]]{0,30}", path in "/[a-z%./:]{0,20}", query in "[a-z=&%+]{0,20}") {
        let Ok(route) = parse_route(source("r", &rest, "m")) else { return Ok(()) };
        if let Ok(table) = RouteTable::build(vec![route]) {
            let _ = table.select_rest(&Method::GET, &Segments::split(&path), Some(&query), &HeaderMap::new());
            if let Ok(query) = Query::parse(Some(&query)) {
                let route = &table.routes()[0];
                let _ = read_url(route, &Segments::split(&path), &query, &mut reading(route));
            }
        }
    }
}
