//! Rows of outcomes made at random, and the replies that fit them.

use super::call::{Content, Reply};
use super::dice::Dice;
use super::json::Json;
use super::pair::{Maker, Pair};
use super::pattern::{Absence, Bindings, Holes, Part, Pattern, Place, Shape, mixed};
use super::route::{Form, Route, Segment, Side};

#[derive(Debug, Clone)]
pub(crate) enum Body {
    None,
    Json(Pattern),
    Text(Vec<Part>),
}

#[derive(Debug, Clone)]
pub(crate) enum RpcReply {
    Result(Pattern),
    Error {
        code: i64,
        /// The hole that stands for the code.
        any_code: Option<String>,
        /// Further codes that are read.
        more: &'static [i64],
        message: Vec<Part>,
        data: Option<Pattern>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) status: u16,
    /// The hole that stands for the status.
    pub(crate) any_status: Option<String>,
    /// Further statuses that are read, as the table writes them, and one of them.
    pub(crate) more: Option<(&'static str, u16)>,
    pub(crate) headers: Vec<(String, Pattern)>,
    pub(crate) body: Body,
    pub(crate) rpc: RpcReply,
    pub(crate) holes: Holes,
    pub(crate) loses: Vec<Side>,
}

/// The set that routes name, in the order of the table.
pub(crate) const SET: &str = "common";

fn member(name: &str, pattern: Pattern) -> (String, Pattern) {
    (name.to_owned(), pattern)
}

fn kind(name: &str) -> (String, Pattern) {
    member("kind", Pattern::Literal(Json::text(name)))
}

fn object(members: Vec<(String, Pattern)>) -> Pattern {
    Pattern::Object(members, None)
}

fn message(name: &str) -> Vec<Part> {
    vec![Part::Hole(name.to_owned())]
}

/// A row of these statuses, without holes.
fn blank(status: u16, rpc: RpcReply) -> Row {
    Row {
        status,
        any_status: None,
        more: None,
        headers: Vec::new(),
        body: Body::None,
        rpc,
        holes: Holes::default(),
        loses: Vec::new(),
    }
}

impl Row {
    fn with(mut self, maker: Maker<'_>) -> Row {
        self.holes = maker.holes;
        self.loses.extend(maker.loses);
        self
    }
}

pub(crate) fn make_all(route: &mut Route, dice: &mut Dice) {
    let mut rows = match dice.below(4) {
        0 if dice.once_in(2) => {
            route.rows = vec![whatever(dice)];
            return;
        }
        0 => Vec::new(),
        1 => vec![whole(route.form, dice)],
        _ => told_apart(route.form, dice),
    };
    if dice.once_in(2) {
        rows.push(not_found(route, dice));
    }
    let conflicts = dice.once_in(3);
    if conflicts {
        rows.extend([("a", 23), ("b", 24)].map(|(code, number)| conflict(code, number, dice)));
    }
    if dice.once_in(3) {
        rows.push(gone(dice));
    }
    if dice.once_in(3) {
        rows.extend(locked(dice));
    }
    if matches!(route.form, Form::Tool | Form::AnyTool) && dice.once_in(2) {
        rows.push(tool_failure(dice));
    }
    route.rows = rows;
    if dice.once_in(2) {
        route.sets.push(SET);
    }
}

/// One success, whatever it is.
fn whole(form: Form, dice: &mut Dice) -> Row {
    let mut maker = Maker::of(dice, "o");
    let (here, there): Pair = match maker.dice.below(3) {
        0 => maker.object(2),
        _ => {
            let name = maker.hole(Shape::Any, Absence::Required, Place::Json);
            (Pattern::Hole(name.clone()), Pattern::Hole(name))
        }
    };
    let there = match (form, maker.dice.once_in(2)) {
        (Form::Tool | Form::AnyTool, _) => {
            let it = object(vec![member("it", there.clone())]);
            let mut all = vec![member("structuredContent", it)];
            if let Pattern::Hole(name) = there {
                // For those who read texts alone.
                maker.loses.push(Side::Rpc);
                let text = vec![member("text", Pattern::WrittenEncoded(name))];
                all.push(member("content", Pattern::List(vec![object(text)], None)));
            }
            object(all)
        }
        (_, true) => object(vec![member("value", there)]),
        (_, false) => there,
    };
    let mut row = blank(200, RpcReply::Result(there)).with(maker);
    row.body = Body::Json(here);
    row
}

/// 200, 201 with a header, and 204, which the result tells.
fn told_apart(form: Form, dice: &mut Dice) -> Vec<Row> {
    let result = |name: &str, value: Pattern| {
        let all = object(vec![kind(name), member("it", value)]);
        RpcReply::Result(match form {
            Form::Tool | Form::AnyTool => object(vec![member("structuredContent", all)]),
            Form::Short | Form::Full | Form::Positional | Form::Method | Form::Sibling => all,
        })
    };
    let mut maker = Maker::of(dice, "o");
    let (here, there) = maker.object(2);
    let mut found = blank(200, result("found", there)).with(maker);
    found.body = Body::Json(here);

    let mut maker = Maker::of(dice, "o");
    let id = maker.hole(Shape::Any, Absence::Required, Place::Header);
    let total = maker.hole(Shape::Integer, Absence::Optional, Place::Header);
    let (here, there) = maker.object(1);
    let there = object(vec![
        member("id", Pattern::Hole(id.clone())),
        member("total", Pattern::Hole(total.clone())),
        member("value", there),
    ]);
    let mut made = blank(201, result("made", there)).with(maker);
    let location = vec![Part::Text("/made/".to_owned()), Part::Hole(id.clone())];
    made.headers = vec![
        ("location".to_owned(), Pattern::Mixed(location)),
        ("x-total".to_owned(), Pattern::Hole(total)),
    ];
    made.body = Body::Json(object(vec![
        member("id", Pattern::Hole(id)),
        member("v", here),
    ]));

    let gone = blank(204, result("nothing", Pattern::Literal(Json::Null)));
    vec![found, made, gone]
}

/// An error with a message and data; it may say the id of the call again.
fn not_found(route: &Route, dice: &mut Dice) -> Row {
    let mut maker = Maker::of(dice, "o");
    let text = maker.hole(Shape::Text, Absence::Required, Place::Json);
    let (here, there) = maker.object(1);
    let mut members = vec![
        member("error", Pattern::Hole(text.clone())),
        member("more", here),
    ];
    let id = route.path.iter().find_map(|segment| match segment {
        Segment::Hole(name) => Some(name.clone()),
        Segment::Literal(_) | Segment::Deep(..) => None,
    });
    if let Some(id) = id.filter(|_| maker.dice.once_in(2)) {
        maker.loses.push(Side::Rest);
        members.push(member("id", Pattern::Written(id)));
    }
    let error = RpcReply::Error {
        code: -32601,
        any_code: None,
        more: &[],
        message: message(&text),
        data: Some(there),
    };
    let mut row = blank(404, error).with(maker);
    row.body = Body::Json(object(members));
    row
}

/// Two of one status, told apart by what they say and by their codes.
fn conflict(code: &str, number: i64, dice: &mut Dice) -> Row {
    let mut maker = Maker::of(dice, "o");
    let text = maker.hole(Shape::Text, Absence::Required, Place::Json);
    let error = RpcReply::Error {
        code: -32000 - number,
        any_code: None,
        more: &[],
        message: message(&text),
        data: None,
    };
    let mut row = blank(409, error).with(maker);
    row.body = Body::Json(object(vec![
        member("code", Pattern::Literal(Json::text(code))),
        member("error", Pattern::Hole(text)),
    ]));
    row
}

/// One that fits all failures of one form; status and code are values.
fn whatever(dice: &mut Dice) -> Row {
    let mut maker = Maker::of(dice, "o");
    let mut hole = |shape| maker.hole(shape, Absence::Required, Place::Json);
    let (status, code, text) = (hole(Shape::Status), hole(Shape::Code), hole(Shape::Text));
    let error = RpcReply::Error {
        code: 0,
        any_code: Some(code.clone()),
        more: &[],
        message: message(&text),
        data: Some(object(vec![member(
            "status",
            Pattern::Hole(status.clone()),
        )])),
    };
    let mut row = blank(0, error).with(maker);
    row.any_status = Some(status);
    row.body = Body::Json(object(vec![
        member("code", Pattern::Hole(code)),
        member("error", Pattern::Hole(text)),
    ]));
    row
}

/// Two of one status, of which one fits less: what is read by it does not come back by the other.
fn locked(dice: &mut Dice) -> [Row; 2] {
    let error = |code, message| RpcReply::Error {
        code,
        any_code: None,
        more: &[],
        message,
        data: None,
    };
    let mut maker = Maker::of(dice, "o");
    let text = maker.hole(Shape::Text, Absence::Required, Place::Json);
    let mut any = blank(423, error(-32061, message(&text))).with(maker);
    any.body = Body::Json(object(vec![member("why", Pattern::Hole(text))]));
    any.loses.push(Side::Rpc);
    let mut one = blank(
        423,
        error(-32062, vec![Part::Text("It is locked".to_owned())]),
    );
    let why = Pattern::Literal(Json::text("locked"));
    one.body = Body::Json(object(vec![member("why", why)]));
    [any, one]
}

/// A body that is no JSON.
fn gone(dice: &mut Dice) -> Row {
    let mut maker = Maker::of(dice, "o");
    let text = maker.hole(Shape::Any, Absence::Required, Place::Mixed);
    let error = RpcReply::Error {
        code: -32031,
        any_code: None,
        more: &[],
        message: message(&text),
        data: None,
    };
    let mut row = blank(410, error).with(maker);
    row.body = Body::Text(vec![Part::Text("Gone: ".to_owned()), Part::Hole(text)]);
    row
}

/// A success that says that the tool failed.
fn tool_failure(dice: &mut Dice) -> Row {
    let mut maker = Maker::of(dice, "o");
    let text = maker.hole(Shape::Text, Absence::Required, Place::Json);
    let block = object(vec![
        member("type", Pattern::Literal(Json::text("text"))),
        member("text", Pattern::Hole(text.clone())),
    ]);
    let result = object(vec![
        member("isError", Pattern::Literal(Json::Boolean(true))),
        member("content", Pattern::List(vec![block], None)),
    ]);
    let mut row = blank(400, RpcReply::Result(result)).with(maker);
    row.body = Body::Json(object(vec![member("error", Pattern::Hole(text))]));
    row
}

/// The rows of the set.
pub(crate) fn set(dice: &mut Dice) -> Vec<Row> {
    let error = |dice: &mut Dice, (status, code, more): (u16, i64, &'static [i64])| {
        let mut maker = Maker::of(dice, "o");
        let text = maker.hole(Shape::Text, Absence::Required, Place::Json);
        let words = RpcReply::Error {
            code,
            any_code: None,
            more,
            message: message(&text),
            data: None,
        };
        let mut row = blank(status, words).with(maker);
        row.body = Body::Json(object(vec![member("reason", Pattern::Hole(text))]));
        row
    };
    let busy = error(dice, (503, -32041, &[]));
    let mut refused = error(dice, (422, -32042, &[-32043]));
    refused.loses.push(Side::Rpc);
    let mut failed = error(dice, (500, -32044, &[]));
    failed.more = Some(("\"5xx\"", 507));
    failed.loses.push(Side::Rest);
    vec![busy, refused, failed]
}

impl Row {
    pub(crate) fn named_headers(&self) -> Vec<String> {
        self.headers.iter().map(|(name, _)| name.clone()).collect()
    }

    /// What a server of this side answers, or its client gets.
    pub(crate) fn reply(&self, side: Side, bindings: &Bindings) -> Reply {
        match side {
            Side::Rest => self.rest_reply(bindings),
            Side::Rpc => Reply::Rpc(self.rpc_reply(bindings)),
        }
    }

    fn rest_reply(&self, bindings: &Bindings) -> Reply {
        let headers = self.headers.iter().filter_map(|(name, pattern)| {
            // `location` is a URL.
            let encoded = matches!(pattern, Pattern::Mixed(_)).then(|| bindings.encoded());
            let value = pattern.write(encoded.as_ref().unwrap_or(bindings))?;
            Some((name.clone(), value.plain()))
        });
        let content = match &self.body {
            Body::None => Content::None,
            Body::Json(pattern) => {
                let written = pattern.write(bindings);
                written.map_or(Content::None, Content::Json)
            }
            Body::Text(parts) => Content::Text(mixed(parts, bindings)),
        };
        let known = self.any_status.as_ref();
        let status = known.map(|name| bindings.values[name].plain());
        Reply::Rest {
            status: status.map_or(self.status, |status| status.parse().unwrap()),
            headers: headers.collect(),
            content,
        }
    }

    fn rpc_reply(&self, bindings: &Bindings) -> Json {
        match &self.rpc {
            RpcReply::Result(pattern) => {
                Json::object([("result", pattern.write(bindings).unwrap_or(Json::Null))])
            }
            RpcReply::Error {
                code,
                any_code,
                message,
                data,
                ..
            } => {
                let known = any_code.as_ref();
                let code = known.map_or(Json::number(code), |name| bindings.values[name].clone());
                let mut error = Json::object([
                    ("code", code),
                    ("message", Json::Text(mixed(message, bindings))),
                ]);
                if let (Json::Object(members), Some(data)) = (&mut error, data) {
                    let data = data.write(bindings);
                    members.extend(data.map(|data| ("data".to_owned(), data)));
                }
                Json::object([("error", error)])
            }
        }
    }

    /// The same reply by another of the numbers that are read.
    pub(crate) fn by_another_number(&self, reply: Reply) -> Reply {
        match (reply, self.more, &self.rpc) {
            (
                Reply::Rest {
                    headers, content, ..
                },
                Some((_, status)),
                _,
            ) => Reply::Rest {
                status,
                headers,
                content,
            },
            (
                Reply::Rpc(Json::Object(mut reply)),
                _,
                RpcReply::Error {
                    more: [code, ..], ..
                },
            ) => {
                if let Some(Json::Object(error)) = reply.get_mut("error") {
                    error.insert("code".to_owned(), Json::number(code));
                }
                Reply::Rpc(Json::Object(reply))
            }
            (reply, _, _) => reply,
        }
    }
}
