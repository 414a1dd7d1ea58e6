//! Bodies that are forms, in both directions.

use super::constructs::{Wanted, both_ways, from_rest, rpc_call};
use super::*;
use crate::check::{self, LossVerdict};
use crate::form::{self, FormType};
use crate::route::test_syntax::{route, route_source};
use crate::route::{RouteTable, parse_route};
use dualgauge_patterns::side::Side;

const FIELDS: &str = r#"{
    "body_format": "form",
    "body": { "name": "{name}", "age": "{age:integer?}", "on": "{on:boolean=false}", "tag": "{tags:string[]?}",
        "ids": "{ids:integer[,]?}", "meta": "{meta:json?}", "v": 2, "auth": "Bearer {token?}" },
    "params": { "name": "{name}", "age": "{age}", "on": "{on}", "tags": "{tags}", "ids": "{ids}", "meta": "{meta}",
        "token": "{token}" }
}"#;

#[test]
fn a_field_has_the_type_of_its_hole() {
    let route = route("POST /x", "m", FIELDS);
    both_ways(
        &route,
        &[
            (
                r#"/x {"name":"n","on":"false","v":"2"}"#,
                r#"m {"name":"n","on":false}"#,
            ),
            (
                r#"/x {"name":"","age":"7","on":"true","tag":["a","b"],"ids":"1,2","meta":"{\"a\":1}","v":"2","auth":"Bearer t"}"#,
                r#"m {"name":"","age":7,"on":true,"tags":["a","b"],"ids":[1,2],"meta":{"a":1},"token":"t"}"#,
            ),
            (
                r#"/x {"name":"n","on":"false","tag":"a","v":"2"}"#,
                r#"m {"name":"n","on":false,"tags":["a"]}"#,
            ),
        ],
    );
    let refused: [(&str, Wanted<'_>); 6] = [
        (r#"/x {"v":"2"}"#, Err("body/name: it is required")),
        (
            r#"/x {"name":["a","b"],"v":"2"}"#,
            Err("body/name: it is given more than once"),
        ),
        (
            r#"/x {"name":"n","age":"x","v":"2"}"#,
            Err("body/age: `x` is not an integer"),
        ),
        (
            r#"/x {"name":"n","v":"3"}"#,
            Err("body/v: it must be `\"2\"`"),
        ),
        (
            r#"/x {"name":"n","v":"2","zz":"1"}"#,
            Err("body/zz: the route does not know it"),
        ),
        (
            r#"/x {"name":{"content":"","filename":"f"},"v":"2"}"#,
            Err("body/name: it is a file"),
        ),
    ];
    from_rest(&route, &refused);
    let error = rpc_call(&route, r#"m {"name":"n","ids":["x"]}"#).unwrap_err();
    assert!(error.starts_with("params/ids"), "{error}");
}

#[test]
fn a_file_is_base64_with_a_name_and_a_type() {
    let route = route(
        "POST /x",
        "m",
        r#"{
            "body_format": "multipart",
            "body": {
                "file": { "content": "{file}", "filename": "{name=file}", "content_type": "{type=application/octet-stream}" },
                "more": ["*", { "content": "{c}", "filename": "{n}" }]
            },
            "params": { "file": "{file}", "name": "{name}", "type": "{type}", "more": ["*", { "c": "{c}", "n": "{n}" }] }
        }"#,
    );
    let file = r#""file":{"content":"aGk=","filename":"f","content_type":"text/plain"}"#;
    let params = r#""file":"aGk=","name":"f","type":"text/plain""#;
    both_ways(
        &route,
        &[
            (
                &format!("/x {{{file}}}"),
                &format!("m {{{params},\"more\":[]}}"),
            ),
            (
                &format!(r#"/x {{{file},"more":{{"content":"","filename":"n"}}}}"#),
                &format!(r#"m {{{params},"more":[{{"c":"","n":"n"}}]}}"#),
            ),
            (
                &format!(
                    r#"/x {{{file},"more":[{{"content":"","filename":"n"}},{{"content":"QQ==","filename":"o"}}]}}"#
                ),
                &format!(r#"m {{{params},"more":[{{"c":"","n":"n"}},{{"c":"QQ==","n":"o"}}]}}"#),
            ),
        ],
    );
}

#[test]
fn an_optional_file_is_absent_with_its_defaults() {
    let more = r#"{
        "body_format": "multipart",
        "body": { "a": "{a}", "file": { "content": "{file:string?}", "filename": "{name=file}" } },
        "params": { "a": "{a}", "file": "{file}", "name": "{name}" }
    }"#;
    let route = route("POST /x", "m", more);
    assert_eq!(
        rpc_call(&route, r#"m {"a":"1"}"#),
        Ok((r#"/x {"a":"1"}"#.to_owned(), 0))
    );
    let error = rpc_call(&route, r#"m {"a":"1","name":"n"}"#).unwrap_err();
    assert!(
        error.contains("a file with a name or a type needs its content"),
        "{error}"
    );
    let table = RouteTable::build(vec![route]).unwrap();
    for direction in &check::check(&table)[0].directions {
        assert!(direction.losses.is_empty(), "{:?}", direction.losses);
    }
}

#[test]
fn a_short_form_carries_texts_in_a_form() {
    let route = route("POST /x/{id}", "m", r#"{ "body_format": "form" }"#);
    both_ways(
        &route,
        &[(
            r#"/x/7 {"a":"1","b":["x","y"]}"#,
            r#"m {"id":"7","a":"1","b":["x","y"]}"#,
        )],
    );
    assert_eq!(
        rpc_call(&route, r#"m {"id":"7"}"#),
        Ok(("/x/7".to_owned(), 0))
    );
}

#[test]
fn the_table_writes_the_form_with_its_type() {
    let route = route("POST /x", "m", FIELDS);
    let table = RouteTable::build(vec![route]).unwrap();
    let params = json(r#"{"name":"a b","tags":["x","y"],"ids":[]}"#);
    let written = table
        .write_rest(0, MethodCall::new("m", Some(&params)), TERMS)
        .unwrap();
    let (name, value) = &written.headers[0];
    assert_eq!(
        (name.as_str(), value.as_bytes()),
        ("content-type", &b"application/x-www-form-urlencoded"[..])
    );
    assert_eq!(
        &written.body.unwrap().into_bytes()[..],
        b"name=a%20b&on=false&tag=x&tag=y&v=2"
    );
    let short = parse_route(route_source(
        "POST /x",
        "m",
        r#"{ "body_format": "multipart" }"#,
    ))
    .unwrap();
    let table = RouteTable::build(vec![short]).unwrap();
    let params = json(r#"{"a":"1","f":{"content":"AP8=","filename":"f.bin"}}"#);
    let written = table
        .write_rest(0, MethodCall::new("m", Some(&params)), TERMS)
        .unwrap();
    let form_type = FormType::of(&written.headers[0].1).unwrap();
    let read = form::decode(&form_type, &written.body.unwrap().into_bytes());
    assert_eq!(read, Ok(params));
    let refused = table.write_rest(0, MethodCall::new("m", Some(&json(r#"{"a":1}"#))), TERMS);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "params/a: a field of a form is a string or a file, not a number"
    );
}

#[test]
fn check_knows_what_a_form_loses() {
    let rows = [
        (r#""a": "{a}""#, r#""a": "{a}""#, LossVerdict::Lossless),
        (
            r#""a": "{a:integer}""#,
            r#""a": "{a}""#,
            LossVerdict::Lossless,
        ),
        (
            r#""a": "{a:string[]?}""#,
            r#""a": "{a}""#,
            LossVerdict::NormalForm,
        ),
        (r#""a": "{a=5}""#, r#""a": "{a}""#, LossVerdict::NormalForm),
        (
            r#""a": "{_=x}", "b": "{b}""#,
            r#""b": "{b}""#,
            LossVerdict::Lossy,
        ),
    ];
    for (body, params, verdict) in rows {
        let more = format!(
            r#"{{ "body_format": "form", "body": {{ {body} }}, "params": {{ {params} }} }}"#
        );
        let table = RouteTable::build(vec![route("POST /x", "m", &more)]).unwrap();
        let reports = check::check(&table);
        let found = reports[0]
            .directions
            .iter()
            .find(|direction| direction.from == Side::Rest);
        let found = found.unwrap();
        assert_eq!(
            found.verdict(),
            verdict,
            "{body}: {:?} {:?}",
            found.losses,
            found.norms
        );
        let unexplained = reports[0]
            .directions
            .iter()
            .flat_map(|direction| &direction.losses);
        assert!(
            unexplained
                .into_iter()
                .all(|finding| finding.rule != check::CheckRule::Unexplained),
            "{body}"
        );
    }
}

#[test]
fn a_body_that_no_form_has_is_a_load_error() {
    let rows = [
        (
            r#""body_format": "form", "body": "{x}""#,
            "needs a body that is a table",
        ),
        (
            r#""body_format": "form", "body": { "a": ["{x}"] }"#,
            "no lists with fixed elements",
        ),
        (
            r#""body_format": "form", "body": { "a": ["*", "{x}"] }"#,
            "`{x:string[]}`",
        ),
        (
            r#""body_format": "form", "body": { "a": { "content": "{x}", "filename": "f" } }"#,
            "a field of a form is a text",
        ),
        (
            r#""body_format": "multipart", "body": { "a": { "b": "{x}" } }"#,
            "a file has the members",
        ),
        (
            r#""body_format": "multipart", "body": { "a": "{x:object}" }"#,
            "`{x:json}`",
        ),
    ];
    for (more, wanted) in rows {
        let more = format!(r#"{{ {more}, "params": {{ "x": "{{x}}" }} }}"#);
        let errors = parse_route(route_source("POST /x", "m", &more)).unwrap_err();
        assert!(errors[0].to_string().contains(wanted), "{more}: {errors:?}");
    }
}
