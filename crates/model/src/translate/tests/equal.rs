//! `{=x}`: a value of a body that equals one of the path.

use super::constructs::{both_ways, from_rest, from_rpc, rest_call, rpc_call};
use super::*;
use crate::route::test_syntax::{route, route_source};

fn changing(id: &str) -> Route {
    let more = format!(
        r#"{{"params":{{"id":"{{id}}","n":"{{n?}}"}},"body":{{"id":"{id}","n":"{{n}}"}}}}"#
    );
    route("PUT /a/{id}", "m", &more)
}

#[test]
fn a_body_has_the_value_of_the_path_in_the_type_of_the_hole() {
    both_ways(
        &changing("{=id}"),
        &[(r#"/a/7 {"id":"7","n":1}"#, r#"m {"id":"7","n":1}"#)],
    );
    both_ways(
        &changing("{=id:integer}"),
        &[(r#"/a/7 {"id":7,"n":1}"#, r#"m {"id":"7","n":1}"#)],
    );
    both_ways(
        &changing("{=id:boolean}"),
        &[(r#"/a/true {"id":true}"#, r#"m {"id":"true"}"#)],
    );
    both_ways(
        &changing("{=id?}"),
        &[
            (r#"/a/7 {"n":1}"#, r#"m {"id":"7","n":1}"#),
            ("/a/7", r#"m {"id":"7"}"#),
        ],
    );
    from_rpc(
        &changing("{=id:integer}"),
        &[
            (
                r#"m {"id":"seven"}"#,
                Err("it must be an integer, not a string"),
            ),
            (
                r#"m {"id":"07"}"#,
                Err("it must be an integer, not a string"),
            ),
        ],
    );
}

#[test]
fn values_are_compared_and_not_their_spellings() {
    for id in ["{=id}", "{=id?}"] {
        let route = changing(id);
        for same in ["7", "7.0", "70e-1", r#""7""#, r#""\u0037""#] {
            let call = format!(r#"/a/7 {{"id":{same}}}"#);
            from_rest(&route, &[(&call, Ok((r#"m {"id":"7"}"#, 0)))]);
        }
        for other in [
            "8",
            "7.5",
            r#""07""#,
            r#""7.0""#,
            "true",
            "[7]",
            r#"{"id":7}"#,
        ] {
            let call = format!(r#"/a/7 {{"id":{other}}}"#);
            let words = "body/id: it differs from `id` in the path, the query or a header";
            from_rest(&route, &[(&call, Err(words))]);
        }
    }
    from_rest(
        &changing("{=id}"),
        &[
            ("/a/7", Err("body/id: it is required")),
            (r#"/a/7 {"id":null}"#, Err("body/id: it differs")),
        ],
    );
    from_rest(
        &changing("{=id?}"),
        &[
            (r#"/a/7 {"id":null}"#, Ok((r#"m {"id":"7"}"#, 0))),
            (r#"/a/1e400 {"id":1e400}"#, Ok((r#"m {"id":"1e400"}"#, 0))),
        ],
    );
}

#[test]
fn only_a_value_of_the_head_has_an_equal() {
    for (body, words) in [
        (
            r#"{"x":"{x}","y":"{=x}"}"#,
            "must equal a hole of the path, the query or a header",
        ),
        (
            r#"{"x":"{x}","y":["*",{"id":"{=id}","y":"{y}"}]}"#,
            "must be a whole value of a request body, outside",
        ),
        (
            r#"{"x":"{x}-{=id}"}"#,
            "must be a whole value of a request body",
        ),
        (
            r#"{"x":"{x}","y":"{=id:object}"}"#,
            "a value of a path, a query or a header is",
        ),
        (r#"{"x":"{x}","y":"{=id=7}"}"#, "has no default"),
        (r#"{"x":"{x}","y":"{=_}"}"#, "name a hole"),
    ] {
        let more = format!(r#"{{"params":{{"id":"{{id}}","x":"{{x}}"}},"body":{body}}}"#);
        let errors = parse_route(route_source("PUT /a/{id}", "m", &more)).unwrap_err();
        assert!(
            errors.iter().any(|error| error.what.contains(words)),
            "{body}: {errors:?}"
        );
    }
    let params = r#"{"params":{"id":"{id}","x":"{=id}"}}"#;
    let errors = parse_route(route_source("GET /a/{id}", "m", params)).unwrap_err();
    assert!(errors[0].what.contains("of a request body"), "{errors:?}");
}

proptest! {
    /// A call that can be written comes back as it was; one of the other side as its normal form, which comes back.
    #[test]
    fn a_value_of_path_and_body_survives(
        id in r#"[0-9]{1,3}|true|-?[0-9]\.[0-9]|[a-z ]{1,4}"#,
        body in r#"0|[1-9][0-9]{0,2}|true|-?[0-9]\.[0-9]|"[a-z0-9]{1,3}""#,
        place in prop::sample::select(vec![
            "{=id}", "{=id?}", "{=id:integer}", "{=id:number?}", "{=id:string}", "{=id:boolean}",
        ]),
    ) {
        let route = changing(place);
        let rpc = format!(r#"m {{"id":"{id}"}}"#);
        if let Ok((rest, _)) = rpc_call(&route, &rpc) {
            prop_assert_eq!(rest_call(&route, &rest), Ok((rpc, 0)));
        }
        let id = id.replace(' ', "%20");
        if let Ok((rpc, _)) = rest_call(&route, &format!(r#"/a/{id} {{"id":{body}}}"#)) {
            let (normal, _) = rpc_call(&route, &rpc).unwrap();
            prop_assert_eq!(rest_call(&route, &normal), Ok((rpc, 0)));
        }
    }
}
