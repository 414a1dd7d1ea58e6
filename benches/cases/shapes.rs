//! Routes and bodies, as real servers have them.

use bytes::Bytes;
use dualgauge_model::outcome::{RestReplySource, RowSource, RpcReplySource};
use dualgauge_model::route::{Extra, Route, RouteSource, parse_route};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::SourceTree;

/// How a body of any size is filled.
#[derive(Clone, Copy)]
pub(crate) enum Fill {
    /// With rows, to about this many bytes.
    Bytes(usize),
    /// With this many rows, and as many members that no route knows.
    Count(usize),
}

impl Fill {
    /// A body around the elements of an array.
    fn around(self, body: impl Fn(&str) -> String) -> String {
        const ROW: &str =
            r#"{"name":"O'Brien","age":30,"tags":["a","b"],"note":"caf\u00e9 \"quoted\""},"#;
        let count = match self {
            Fill::Count(count) => count,
            // As many as come nearest to the size.
            Fill::Bytes(size) => {
                let room = size.saturating_sub(body("null").len());
                (room + ROW.len() / 2) / ROW.len()
            }
        };
        body(&format!("{}null", ROW.repeat(count)))
    }

    /// Members that no route knows, each with its comma before it.
    fn strangers(self) -> String {
        match self {
            Fill::Bytes(_) => String::new(),
            Fill::Count(count) => (0..count)
                .map(|n| format!(r#","member_{n}":{n}"#))
                .collect(),
        }
    }
}

/// The body of a call that is carried, or opened beside a hole in the path.
pub(crate) fn plain_body(fill: Fill) -> String {
    let strangers = fill.strangers();
    fill.around(|rows| format!(
        r#"{{"name":"insert_record","arguments":{{"table_name":"users","rows":[{rows}]}}{strangers}}}"#
    ))
}

/// The target, the body and the params of one call of [`twelve`].
pub(crate) fn twelve_call(fill: Fill) -> (&'static str, String, String) {
    let target = "/workspaces/acme/projects/42/tasks/t-9?notify=true&labels=a,b&limit=25";
    let strangers = fill.strangers();
    let body = fill.around(|rows| format!(
        r#"{{"title":"Review the plan","due":"2026-12-01","priority":2,"assignee":{{"id":"u-17"}},"done":false,"rows":[{rows}]{strangers}}}"#
    ));
    let params = fill.around(|rows| format!(
        r#"{{"name":"update_task","arguments":{{"workspace_id":"acme","project":42,"task_id":"t-9","notify":true,"labels":["a","b"],"limit":25,"fields":{{"title":"Review the plan","due_date":"2026-12-01","priority":2,"assignee_id":"u-17","completed":false,"rows":[{rows}]}}}}{strangers}}}"#
    ));
    (target, body, params)
}

/// The body and the result of one answer of [`twelve`].
pub(crate) fn twelve_reply(fill: Fill) -> (String, String) {
    let strangers = fill.strangers();
    let body = fill.around(|rows| format!(
        r#"{{"id":"t-9","title":"Review the plan","state":"open","owner":{{"id":"u-17","mail":"a@b.example"}},"created":1764547200,"updated":1764550800,"comments":3,"locked":false,"tags":["a","b"],"project":42,"rows":[{rows}]{strangers}}}"#
    ));
    let result = fill.around(|rows| format!(
        r#"{{"structuredContent":{{"task":{{"task_id":"t-9","name":"Review the plan","status":"open","owner_id":"u-17","owner_mail":"a@b.example","created_at":1764547200,"updated_at":1764550800,"comment_count":3,"is_locked":false,"labels":["a","b"],"project":42,"rows":[{rows}]}}}}{strangers}}}"#
    ));
    (body, result)
}

/// A list whose elements are renamed one by one, on both sides.
pub(crate) fn list_call(count: usize) -> (String, String) {
    let list = |one: &str, other: &str| {
        let items = (0..count).map(|n| format!(r#"{{"{one}":"n{n}","{other}":{n}}}"#));
        items.collect::<Vec<_>>().join(",")
    };
    let body = format!(r#"{{"items":[{}]}}"#, list("name", "age"));
    let params = format!(r#"{{"people":[{}]}}"#, list("label", "years"));
    (body, params)
}

/// The short form.
pub(crate) fn short(rest: &str) -> Route {
    route(RouteSource {
        rest: rest.into(),
        ..RouteSource::default()
    })
}

/// Holes in path, query and body, typed, renamed, and nested in the arguments of a tool; an answer like it.
pub(crate) fn twelve() -> Route {
    route(RouteSource {
        rest: "PUT /workspaces/{workspace}/projects/{project:integer}/tasks/{task}?notify={notify:boolean=false}&labels={labels:string[,]?}&limit={limit:integer=50}".into(),
        body: Some(tree(
            r#"{"title":"{title:string}","due":"{due:string?}","priority":"{priority:integer}","assignee":{"id":"{assignee:string}"},"done":"{done:boolean}","rows":"{rows:array}"}"#,
        )),
        params: Some(tree(
            r#"{"name":"update_task","arguments":{"workspace_id":"{workspace}","project":"{project}","task_id":"{task}","notify":"{notify}","labels":"{labels}","limit":"{limit}","fields":{"title":"{title}","due_date":"{due}","priority":"{priority}","assignee_id":"{assignee}","completed":"{done}","rows":"{rows}"}}}"#,
        )),
        extra: Some(Extra::Drop),
        rows: vec![
            row(
                200,
                r#"{"id":"{id}","title":"{title}","state":"{state}","owner":{"id":"{owner}","mail":"{mail}"},"created":"{created:integer}","updated":"{updated:integer}","comments":"{comments:integer}","locked":"{locked:boolean}","tags":"{tags:array}","project":"{project}","rows":"{rows:array}"}"#,
                RpcReplySource::Result(tree(
                    r#"{"structuredContent":{"task":{"task_id":"{id}","name":"{title}","status":"{state}","owner_id":"{owner}","owner_mail":"{mail}","created_at":"{created}","updated_at":"{updated}","comment_count":"{comments}","is_locked":"{locked}","labels":"{tags}","project":"{project}","rows":"{rows}"}}}"#,
                )),
            ),
            row(
                404,
                r#"{"code":"NotFound","message":"{message}"}"#,
                RpcReplySource::Error {
                    code: tree("-32004"),
                    message: Some(tree(r#""{message}""#)),
                    data: None,
                },
            ),
        ],
        ..RouteSource::default()
    })
}

/// A list whose elements are read one by one.
pub(crate) fn list() -> Route {
    route(RouteSource {
        rest: "POST /people".into(),
        body: Some(tree(
            r#"{"items":["*",{"name":"{name:string}","age":"{age:integer}"}]}"#,
        )),
        params: Some(tree(
            r#"{"people":["*",{"label":"{name}","years":"{age}"}]}"#,
        )),
        ..RouteSource::default()
    })
}

fn route(source: RouteSource) -> Route {
    let named = RouteSource {
        name: "r".into(),
        rpc: "tools/call".into(),
        ..source
    };
    parse_route(named).expect("the patterns are well-formed")
}

fn row(status: u16, body: &str, rpc: RpcReplySource) -> RowSource {
    RowSource {
        key: format!("outcome {status}"),
        origin: 0,
        order: Default::default(),
        rest: RestReplySource {
            rest_protocol: Default::default(),
            status: tree(&status.to_string()),
            headers: Vec::new(),
            body: Some(tree(body)),
            text: None,
        },
        rpc,
        lossy: None,
    }
}

/// What a route table says, spelled in JSON.
pub(crate) fn tree(text: &str) -> SourceTree {
    let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), 32);
    tree_of(&json.expect("the text is JSON"))
}

fn tree_of(json: &Json) -> SourceTree {
    match json.kind() {
        JsonKind::Object => {
            let members = json.open().expect("each name occurs once");
            let members = members.into_iter();
            SourceTree::Table(
                members
                    .map(|member| (member.name.into(), tree_of(&json.piece(member.value))))
                    .collect(),
            )
        }
        JsonKind::Array => SourceTree::List(
            json.elements()
                .map(|place| tree_of(&json.piece(place)))
                .collect(),
        ),
        JsonKind::String => SourceTree::Text(
            json.text()
                .expect("it is a string")
                .expect("it is Unicode text"),
        ),
        JsonKind::Number | JsonKind::Boolean | JsonKind::Null => SourceTree::Literal(json.clone()),
    }
}
