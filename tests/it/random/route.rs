//! A route made at random: both sides, its rows, and the calls that fit.

use super::call::{Call, RestCall, RpcCall};
use super::dice::Dice;
use super::json::Json;
use super::pair::Maker;
use super::pattern::{Absence, Bindings, Holes, Part, Pattern, Place, Shape, mixed};
use super::row::{self, Row};

pub(crate) use super::side::Side;

#[derive(Debug, Clone)]
pub(crate) enum Segment {
    Literal(String),
    Hole(String),
    /// `{x=dir/*}` or `{x=**}`
    Deep(String, &'static str),
}

#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) http_method: &'static str,
    pub(crate) path: Vec<Segment>,
    pub(crate) verb: String,
    pub(crate) query: Vec<(String, Pattern)>,
    pub(crate) headers: Vec<(String, Pattern)>,
    pub(crate) body: Option<Pattern>,
    pub(crate) method: Vec<Part>,
    pub(crate) params: Pattern,
    pub(crate) form: Form,
    pub(crate) holes: Holes,
    pub(crate) loses: Vec<Side>,
    pub(crate) rows: Vec<Row>,
    pub(crate) sets: Vec<&'static str>,
    pub(crate) extra: Option<&'static str>,
    /// Whether the query has a table of its own.
    pub(crate) query_is_table: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Short,
    /// `params` and `body` are spelled out.
    Full,
    /// The same, and all is a tool's.
    Tool,
    /// The same, and any tool's.
    AnyTool,
    /// The same, by position.
    Positional,
    /// The same, and the method has a hole.
    Method,
    /// The same, told from others of its path by a literal of the query.
    Sibling,
}

const FORMS: [Form; 7] = [
    Form::Short,
    Form::Full,
    Form::Tool,
    Form::Positional,
    Form::Method,
    Form::Sibling,
    Form::AnyTool,
];

/// The route of this place in its table.
pub(crate) fn make(index: usize, dice: &mut Dice) -> Route {
    // Every table has every form, and all else is chance.
    let form = FORMS[index % FORMS.len()];
    let with_body = form != Form::Positional && form != Form::Sibling && dice.once_in(2);
    let methods: &[&'static str] = match with_body {
        true => &["POST", "PUT", "PATCH"],
        false => &["GET", "GET", "DELETE", "POST"],
    };
    let http_method = match form {
        Form::Sibling => "GET",
        Form::AnyTool => "POST",
        Form::Short | Form::Full | Form::Tool | Form::Positional | Form::Method => {
            dice.pick(methods)
        }
    };
    let mut maker = Maker::of(dice, "h");
    let mut route = blank((index, form), http_method);
    route.query_is_table = maker.dice.once_in(3);
    let mut members = Vec::new();
    if form != Form::AnyTool {
        make_path(&mut route, index, &mut maker, &mut members);
        make_query(&mut route, index, &mut maker, &mut members);
    }
    if form != Form::Short {
        make_headers(&mut route, &mut maker, &mut members);
    }
    let rest = make_body((&mut route, with_body), &mut maker, &mut members);
    route.params = params((&mut route, index), (members, rest), &mut maker);
    route.loses = std::mem::take(&mut maker.loses);
    route.holes = maker.holes;
    if form != Form::Short {
        route.extra = dice.pick(&[None, Some("drop"), Some("reject")]);
    }
    row::make_all(&mut route, dice);
    route
}

type Members = Vec<(String, Pattern)>;

/// A route that takes nothing.
fn blank((index, form): (usize, Form), http_method: &'static str) -> Route {
    Route {
        name: format!("r{index}"),
        http_method,
        path: vec![Segment::Literal(format!("r{index}"))],
        verb: String::new(),
        query: Vec::new(),
        headers: Vec::new(),
        body: None,
        method: vec![Part::Text(format!("r{index}/do"))],
        params: Pattern::Object(Vec::new(), None),
        form,
        holes: Holes::default(),
        loses: Vec::new(),
        rows: Vec::new(),
        sets: Vec::new(),
        extra: None,
        query_is_table: false,
    }
}

/// The body, and its members that are carried.
fn make_body(
    (route, with_body): (&mut Route, bool),
    maker: &mut Maker<'_>,
    members: &mut Members,
) -> Option<String> {
    // The short form without a body knows no members, with GET or DELETE alone.
    let carries = !matches!(route.http_method, "GET" | "DELETE");
    match route.form {
        Form::Short if carries => {
            let rest = maker.hole(Shape::Object, Absence::Required, Place::Json);
            route.body = Some(Pattern::Object(Vec::new(), Some(rest.clone())));
            Some(rest)
        }
        Form::Full | Form::Tool | Form::Method if with_body => {
            let (mut one, other) = maker.object(2);
            if let (Pattern::Object(body, _), Some((name, _))) = (&mut one, members.first())
                && maker.holes.find(name).place == Place::Path
                && maker.dice.once_in(2)
            {
                // What is in the path is in the body once more.
                body.push(("again".to_owned(), Pattern::Hole(name.clone())));
            }
            route.body = Some(one);
            members.push(("data".to_owned(), other));
            None
        }
        Form::AnyTool => {
            let tool = maker.hole(Shape::Text, Absence::Required, Place::Mixed);
            // With the arguments required it would not fit all that the others fit.
            let absence = Absence::Default(Json::object([]));
            let arguments = maker.hole(Shape::Object, absence, Place::Json);
            let body = [("tool", tool), ("arguments", arguments)];
            let body = body.map(|(name, hole)| (name.to_owned(), Pattern::Hole(hole)));
            members.extend(body.clone());
            members[0].0 = "name".to_owned();
            route.body = Some(Pattern::Object(body.into(), None));
            None
        }
        Form::Short | Form::Full | Form::Tool | Form::Positional | Form::Method | Form::Sibling => {
            None
        }
    }
}

fn make_path(route: &mut Route, index: usize, maker: &mut Maker<'_>, members: &mut Members) {
    if route.form == Form::Sibling {
        route.path = vec![Segment::Literal("shared".to_owned())];
        return;
    }
    if route.form == Form::Method {
        let tool = maker.hole(Shape::Enum, Absence::Required, Place::Path);
        route.path.push(Segment::Hole(tool.clone()));
        route.method.push(Part::Text("/".to_owned()));
        route.method.push(Part::Hole(tool));
        return;
    }
    let (shape, place) = match maker.dice.below(5) {
        0 => return,
        1 => (Shape::Integer, Place::Path),
        2 => (Shape::Any, Place::Deep),
        _ => (Shape::Any, Place::Path),
    };
    let id = maker.hole(shape, Absence::Required, place);
    members.push((id.clone(), Pattern::Hole(id.clone())));
    if place == Place::Deep {
        let several = maker.dice.pick(&["dir/*", "**", "dir/**"]);
        route.path.push(Segment::Deep(id, several));
        return;
    }
    match maker.dice.below(3) {
        // Routes that differ by their verb, and by what is behind the hole.
        0 => {
            route.path[0] = Segment::Literal("verbs".to_owned());
            route.verb = format!("do{index}");
            route.path.push(Segment::Hole(id));
        }
        1 => {
            route.path[0] = Segment::Literal("things".to_owned());
            route.path.push(Segment::Hole(id));
            route.path.push(Segment::Literal(format!("r {index}")));
        }
        _ => route.path.push(Segment::Hole(id)),
    }
}

fn make_query(route: &mut Route, index: usize, maker: &mut Maker<'_>, members: &mut Members) {
    // The first of them is the one for all other calls.
    if route.form == Form::Sibling && index >= FORMS.len() {
        let kind = Pattern::Literal(Json::text(format!("k{index}")));
        route.query.push(("kind".to_owned(), kind));
    }
    let count = match route.form {
        Form::Positional => 2,
        Form::Short | Form::Full | Form::Tool | Form::AnyTool | Form::Method | Form::Sibling => {
            maker.dice.below(4)
        }
    };
    for place in 0..count {
        let shapes = [
            Shape::Any,
            Shape::Text,
            Shape::Integer,
            Shape::Number,
            Shape::Boolean,
            Shape::Enum,
            Shape::Repeated(Box::new(Shape::Text)),
            Shape::Repeated(Box::new(Shape::Integer)),
            Shape::Separated(Box::new(Shape::Text)),
            Shape::Separated(Box::new(Shape::Integer)),
            Shape::Encoded,
        ];
        let shape = maker.dice.pick(&shapes);
        let encoded = matches!(shape, Shape::Encoded);
        // By position, only what is last may be absent.
        let absence = match (route.form, place) {
            (Form::Positional, 0) => Absence::Required,
            (_, _) => maker.absence(&shape),
        };
        let name = maker.hole(shape, absence, Place::Query);
        if route.form != Form::Short {
            maker.differ(&name);
        }
        let here = match encoded {
            true => Pattern::Encoded(name.clone()),
            false => Pattern::Hole(name.clone()),
        };
        route.query.push((format!("q{place}"), here));
        members.push((name.clone(), Pattern::Hole(name)));
    }
    if matches!(route.form, Form::Full | Form::Tool | Form::Method) {
        make_odd_query(route, maker, members);
    }
}

/// A text with two holes, and a parameter that is forgotten.
fn make_odd_query(route: &mut Route, maker: &mut Maker<'_>, members: &mut Members) {
    if maker.dice.once_in(4) {
        let first = maker.hole(Shape::Any, Absence::Required, Place::Mixed);
        let last = maker.hole(Shape::Integer, Absence::Required, Place::Mixed);
        let text = Part::Text("..".to_owned());
        let parts = vec![Part::Hole(first.clone()), text, Part::Hole(last.clone())];
        route
            .query
            .push(("range".to_owned(), Pattern::Mixed(parts)));
        members.extend([first, last].map(|name| (name.clone(), Pattern::Hole(name))));
    }
    if maker.dice.once_in(6) {
        maker.loses.push(Side::Rest);
        let value = maker.dice.pick(&[None, Some(Json::text("v"))]);
        route
            .query
            .push(("trace".to_owned(), Pattern::Forgotten(value)));
    }
}

fn make_headers(route: &mut Route, maker: &mut Maker<'_>, members: &mut Members) {
    if matches!(route.form, Form::Positional | Form::AnyTool) {
        return;
    }
    for place in 0..maker.dice.below(3) {
        let name = match maker.dice.below(4) {
            3 => {
                let shape = Shape::Separated(Box::new(Shape::Text));
                let absence = maker.absence(&shape);
                maker.hole(shape, absence, Place::Header)
            }
            0 => {
                let name = maker.hole(Shape::Any, Absence::Required, Place::Header);
                let parts = vec![Part::Text("Key ".to_owned()), Part::Hole(name.clone())];
                route
                    .headers
                    .push((format!("x-key-{place}"), Pattern::Mixed(parts)));
                members.push((name.clone(), Pattern::Hole(name)));
                continue;
            }
            1 => maker.hole(Shape::Integer, Absence::Optional, Place::Header),
            _ => {
                let absence = maker.absence(&Shape::Any);
                let name = maker.hole(Shape::Any, absence, Place::Header);
                maker.differ(&name);
                name
            }
        };
        route
            .headers
            .push((format!("x-h-{place}"), Pattern::Hole(name.clone())));
        members.push((name.clone(), Pattern::Hole(name)));
    }
}

/// Where the values go on the RPC side.
fn params(
    (route, index): (&mut Route, usize),
    (mut members, rest): (Members, Option<String>),
    maker: &mut Maker<'_>,
) -> Pattern {
    match route.form {
        Form::Short => Pattern::Object(members, rest),
        Form::Positional => {
            Pattern::List(members.into_iter().map(|(_, value)| value).collect(), None)
        }
        Form::Tool => {
            route.method = vec![Part::Text("tools/call".to_owned())];
            let tool = Pattern::Literal(Json::text(format!("tool_{index}")));
            if members.is_empty() {
                return Pattern::Object(vec![("name".to_owned(), tool)], None);
            }
            let arguments = Pattern::Object(members, None);
            let members = vec![
                ("name".to_owned(), tool),
                ("arguments".to_owned(), arguments),
            ];
            Pattern::Object(members, None)
        }
        Form::AnyTool => {
            route.method = vec![Part::Text("tools/call".to_owned())];
            Pattern::Object(members, None)
        }
        Form::Full | Form::Method | Form::Sibling => {
            // Some are renamed, and some lie deeper.
            let deeper = members.split_off(members.len() - maker.dice.below(members.len() + 1));
            let renamed = |(name, value)| (format!("p_{name}"), value);
            let mut members: Members = members.into_iter().map(renamed).collect();
            if !deeper.is_empty() {
                members.push(("page".to_owned(), Pattern::Object(deeper, None)));
            }
            if maker.dice.once_in(4) {
                members.push(("version".to_owned(), Pattern::Literal(Json::number(2))));
            }
            Pattern::Object(members, None)
        }
    }
}

impl Route {
    /// Whether it depends on other routes if it loses: a call of any tool may be read by the route of its tool.
    pub(crate) fn may_lose(&self) -> bool {
        self.form == Form::AnyTool
    }

    /// The names of the headers of the call.
    pub(crate) fn named_headers(&self) -> Vec<String> {
        self.headers.iter().map(|(name, _)| name.clone()).collect()
    }

    /// A call that says nothing in the other of two ways: no params or `{}`, no body or `{}`.
    pub(crate) fn empty_otherwise(&self, call: &mut Call) {
        let empty = Json::object([]);
        match call {
            Call::Rest(call) => {
                let body = self.body.as_ref();
                let body = body.filter(|body| {
                    matches!(body, Pattern::Object(..)) && body.may_be_empty(&self.holes)
                });
                if body.is_some() && call.body.is_none() {
                    call.body = Some(empty);
                } else if self.form == Form::Short && call.body == Some(empty) {
                    call.body = None;
                }
            }
            Call::Rpc(call) if call.params == Some(empty) => call.params = None,
            Call::Rpc(_) => {}
        }
    }

    /// The same call with what no pattern names, where that does no harm.
    pub(crate) fn with_unknown(&self, call: &Call) -> Call {
        let mut call = call.clone();
        let drops = self.extra == Some("drop");
        match &mut call {
            Call::Rest(call) => {
                // Every route ignores `utm_*` unless it is told otherwise.
                let name = if drops { "zz" } else { "utm_zz" };
                call.query.push((name.to_owned(), "1".to_owned()));
                if let (Some(Json::Object(body)), true) = (&mut call.body, drops) {
                    let whole = matches!(self.body, Some(Pattern::Object(_, None)));
                    body.extend(whole.then(|| ("unknown".to_owned(), Json::Null)));
                }
            }
            Call::Rpc(call) => {
                if let (Some(Json::Object(params)), true) = (&mut call.params, drops) {
                    params.insert("unknown".to_owned(), Json::List(Vec::new()));
                }
            }
        }
        call
    }

    /// The call of one side that bears these values.
    pub(crate) fn call(&self, side: Side, bindings: &Bindings) -> Call {
        match side {
            Side::Rest => Call::Rest(self.rest_call(bindings)),
            Side::Rpc => Call::Rpc(RpcCall {
                method: mixed(&self.method, bindings),
                params: self.params.write(bindings),
            }),
        }
    }

    fn rest_call(&self, bindings: &Bindings) -> RestCall {
        let mut path: Vec<String> = Vec::new();
        for segment in &self.path {
            match segment {
                Segment::Literal(text) => path.push(text.clone()),
                Segment::Hole(name) => path.push(bindings.values[name].plain()),
                Segment::Deep(name, _) => {
                    path.extend(bindings.values[name].plain().split('/').map(str::to_owned));
                }
            }
        }
        if let Some(last) = path.last_mut().filter(|_| !self.verb.is_empty()) {
            last.push_str(&format!(":{}", self.verb));
        }
        let mut query = Vec::new();
        for (name, pattern) in &self.query {
            let values = match (pattern.write(bindings), self.separator(pattern)) {
                (None, _) => Vec::new(),
                (Some(Json::List(list)), Some(separator)) => {
                    let texts: Vec<String> = list.iter().map(Json::plain).collect();
                    vec![texts.join(separator)]
                }
                (Some(Json::List(list)), _) => list.iter().map(Json::plain).collect(),
                (Some(value), _) => vec![value.plain()],
            };
            query.extend(values.into_iter().map(|value| (name.clone(), value)));
        }
        query.sort_by(|one, other| one.0.cmp(&other.0));
        let headers = self.headers.iter().filter_map(|(name, pattern)| {
            let mut value = pattern.write(bindings)?;
            if let Json::List(list) = &value {
                value = Json::Text(list.iter().map(Json::plain).collect::<Vec<_>>().join(","));
            }
            let value = value.plain();
            Some((name.clone(), value))
        });
        let body = self.body.as_ref();
        let body = body.and_then(|pattern| {
            let written = pattern.write(bindings)?;
            let says_nothing = written == Json::object([]) && pattern.may_be_empty(&self.holes);
            // A short form sends `{}` where a full form sends nothing.
            (self.form == Form::Short || !says_nothing).then_some(written)
        });
        RestCall {
            method: self.http_method.to_owned(),
            path,
            query,
            headers: headers.collect(),
            body,
        }
    }

    fn separator(&self, pattern: &Pattern) -> Option<&'static str> {
        let Pattern::Hole(name) = pattern else {
            return None;
        };
        matches!(self.holes.find(name).shape, Shape::Separated(_)).then_some(",")
    }
}
