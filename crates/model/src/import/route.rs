//! One route as the keys of its table, from a pair of operations or from one operation alone.
//!
//! The short form is used where it suffices; only the rest is spelled out.
//!
//! Used by `import::table`.

use std::collections::{BTreeMap, BTreeSet};

use super::bind;
use super::drafted::{Drafted, DraftedResult, Pattern};
use super::form;
use super::keys::{ClaimedKeys, RouteKeys, RouteOrigin, rpc_key};
use super::method_prefix;
use super::model::{BodyModel, CallModel, ReplyModel, RestOperation, RpcOperation, Segment};
use super::pair::{Mismatches, OperationPair};
use super::param_patterns::ParamPatterns;
use super::refs::shown;
use super::reply;
use super::tool_rows::{self, RestDeclaration};
use super::values::{Bindings, BoundParameter, RestLocation, RpcLocation};
use crate::stream_format::StreamFormat;
use dualgauge_patterns::percent::{self, Keep};

/// Drafts the route of a pair.
///
/// # Errors
/// Returns the reason why the two cannot be one route, although their names match.
pub(super) fn from_pair(
    operations: (&RestOperation, &RpcOperation, Mismatches),
    pair: &OperationPair,
    declared: &RestDeclaration<'_>,
) -> Result<(Drafted, RouteKeys), String> {
    let (rest, rpc, mismatches) = operations;
    let bind = |rpc: &RpcOperation| {
        if let Some(why) = method_prefix::unsure_value(rpc, pair.prefix.as_deref()) {
            return Err(why);
        }
        let bindings = bind::pair(rest, rpc)?;
        match bindings
            .mismatch()
            .filter(|_| mismatches == Mismatches::Refused)
        {
            Some(why) => Err(why.to_owned()),
            None => Ok(bindings),
        }
    };
    let named = rpc.by_name();
    let named = named.and_then(|rpc| Some((bind(&rpc).ok()?, rpc)));
    let named = named.map(|(bindings, rpc)| bound_pair(rest, &rpc, pair, bindings, declared));
    match (bind(rpc), named) {
        (Ok(bindings), named) => {
            let (mut drafted, keys) = bound_pair(rest, rpc, pair, bindings, declared);
            if let Some((named, _)) = named {
                drafted.add_by_name(named);
            }
            Ok((drafted, keys))
        }
        (Err(why), Some((mut drafted, keys))) => {
            drafted.comments.push(format!(
                "look: it accepts params by name and by position; this route uses names only, because {why}"
            ));
            Ok((drafted, keys))
        }
        (Err(why), None) => Err(why),
    }
}

impl Drafted {
    /// Adds the route for clients that send params by name.
    fn add_by_name(&mut self, mut named: Drafted) {
        self.comments.push(
            "it accepts params by name and by position: this route sends an array, the next one an object"
                .to_owned(),
        );
        named.name.push_str(".by-name");
        named.from = Some("rpc");
        named.comments = vec![format!(
            "`{}` for clients that send params by name",
            shown(&self.rpc)
        )];
        self.by_name = Some(Box::new(named));
    }
}

fn bound_pair(
    rest: &RestOperation,
    rpc: &RpcOperation,
    pair: &OperationPair,
    bindings: Bindings,
    declared: &RestDeclaration<'_>,
) -> (Drafted, RouteKeys) {
    let decided = if pair.decided_by_parameters {
        "; the names of the parameters decided"
    } else {
        ""
    };
    let mut comments = notes(&rest.notes, &rpc.notes);
    comments.push(format!("paired: {}{decided}", pair.rule.reason()));
    let prefix = pair.prefix.iter();
    comments
        .extend(prefix.map(|it| format!("guess: `{}` is a prefix of several methods", shown(it))));
    let mut drafted = assemble(rest, rpc, &bindings);
    comments.extend(bindings.notes.iter().cloned());
    match rpc.call {
        CallModel::ByName | CallModel::ByPosition => {
            drafted.outcomes = reply::rows(rest.reply, &bindings);
        }
        CallModel::Tool => {
            let rows = tool_rows::draft(rest, rpc, &bindings, declared);
            drafted.result = match rows.maps_result {
                true => DraftedResult::MappedToolValue,
                false => DraftedResult::ToolValue,
            };
            drafted.outcomes = rows.rows;
            comments.retain(|comment| !reply::is_location_note(comment));
            comments.extend(rows.notes);
        }
    }
    drafted.comments = comments;
    let keys = keys(rest, rpc, RouteOrigin::Pair);
    (drafted, keys)
}

fn notes(rest: &[String], rpc: &[String]) -> Vec<String> {
    let known: BTreeSet<&String> = rest.iter().collect();
    let others = rpc.iter().filter(|note| !known.contains(note));
    rest.iter().chain(others).cloned().collect()
}

fn keys(rest: &RestOperation, rpc: &RpcOperation, origin: RouteOrigin) -> RouteKeys {
    let title = match origin {
        RouteOrigin::Pair => format!("{} and {}", rest.title(), rpc.title()),
        RouteOrigin::Rest => rest.title(),
        RouteOrigin::Rpc => rpc.title(),
    };
    RouteKeys {
        title: shown(&title),
        origin,
        rest: rest_key(rest),
        rpc: rpc_key(rpc),
    }
}

/// Returns the REST side without the names of its holes.
fn rest_key(rest: &RestOperation) -> String {
    let mut key = format!("{} ", rest.method);
    for segment in &rest.segments {
        key.push('/');
        let text = |text: &str| percent::normalise(text).into_owned();
        let segment = segment.render(text, |_| Some("{}".to_owned()));
        key.push_str(&segment.unwrap_or_default());
    }
    if rest.segments.is_empty() {
        key.push('/');
    }
    key
}

/// Drafts the route of a REST operation without a twin. With `passes`, its calls stay with the REST server.
pub(super) fn rest_alone(
    rest: &RestOperation,
    claimed: &mut ClaimedKeys,
    passes: bool,
) -> (Drafted, RouteKeys) {
    let bindings = bind::rest_alone(rest);
    let rpc = RpcOperation::invented(claimed.name_for(rest), CallModel::ByName);
    let mut drafted = assemble(rest, &rpc, &bindings);
    drafted.outcomes = reply::rows(rest.reply, &bindings);
    drafted.comments.clone_from(&rest.notes);
    let unpaired = match passes {
        true => {
            "unpaired: no RPC operation matches it, so its calls pass to the REST server; to translate them, write `rpc` \
             and remove `stage` and `from`"
        }
        false => "unpaired: no RPC operation matches it; check the method name",
    };
    drafted.comments.push(unpaired.to_owned());
    drafted.always_passes = passes;
    drafted.from = passes.then_some("rest");
    drafted.comments.extend(bindings.notes);
    let keys = keys(rest, &rpc, RouteOrigin::Rest);
    (drafted, keys)
}

/// Drafts the route of an RPC operation without a twin. With `passes`, calls of RPC clients stay with the RPC server.
pub(super) fn rpc_alone(
    rpc: &RpcOperation,
    claimed: &mut ClaimedKeys,
    passes: bool,
) -> (Drafted, RouteKeys) {
    let bindings = bind::rpc_alone(rpc);
    let segments = path_of_name(&rpc.name);
    let prefix = match rpc.call {
        CallModel::Tool => Some("tools".to_owned()),
        CallModel::ByName | CallModel::ByPosition => None,
    };
    let mut rest = invented_rest(&segments, prefix);
    let key = rest_key(&rest);
    while !claimed.is_free_rest(&rest_key(&rest)) {
        let prefix = match claimed.number(&key) {
            1 => "calls".to_owned(),
            number => format!("calls-{number}"),
        };
        rest = invented_rest(&segments, Some(prefix));
    }
    let mut drafted = assemble(&rest, rpc, &bindings);
    if rpc.call == CallModel::Tool {
        drafted.result = DraftedResult::ToolValue;
    }
    drafted.effect = rpc.effect;
    drafted.comments.clone_from(&rpc.notes);
    if rpc.effect.is_some() {
        let note = "look: `effect` comes from the hints of the tool";
        drafted.comments.push(note.to_owned());
    }
    drafted
        .comments
        .push("unpaired: no REST operation matches it; check method and path".to_owned());
    drafted.comments.extend(bindings.notes);
    drafted.from = passes.then_some("rest");
    if let Some(named) = rpc.by_name().filter(|_| !passes) {
        let mut named = assemble(&rest, &named, &bind::rpc_alone(&named));
        named.effect = rpc.effect;
        drafted.add_by_name(named);
    }
    let keys = keys(&rest, rpc, RouteOrigin::Rpc);
    (drafted, keys)
}

/// Returns the REST side of an operation that has none: its arguments are the body.
fn invented_rest(segments: &[Segment], prefix: Option<String>) -> RestOperation {
    let first = prefix.map(Segment::Literal);
    let segments: Vec<Segment> = first.into_iter().chain(segments.iter().cloned()).collect();
    let literals = segments.iter().filter_map(|segment| match segment {
        Segment::Literal(text) => Some(text.as_str()),
        Segment::Hole { .. } | Segment::Mixed(_) => None,
    });
    RestOperation {
        method: "POST".to_owned(),
        path: format!("/{}", literals.collect::<Vec<_>>().join("/")),
        segments,
        id: None,
        parameters: Vec::new(),
        unread: Vec::new(),
        body: BodyModel::Members {
            members: Vec::new(),
            has_others: false,
        },
        form: None,
        reply: ReplyModel::Usual,
        stream: None,
        notes: Vec::new(),
        document: 0,
        origin: String::new(),
    }
}

/// Drafts the route of a REST operation as a tool.
pub(super) fn assemble_tool(
    rest: &RestOperation,
    rpc: &RpcOperation,
    bindings: &Bindings,
) -> Drafted {
    assemble(rest, rpc, bindings)
}

/// Returns the keys of a tool's route.
pub(super) fn tool_keys(rest: &RestOperation, rpc: &RpcOperation) -> RouteKeys {
    RouteKeys {
        title: shown(&rest.title()),
        ..keys(rest, rpc, RouteOrigin::Rest)
    }
}

/// Splits a name into path segments: `pets.findById` → `pets`, `findById`.
fn path_of_name(name: &str) -> Vec<Segment> {
    let parts = name.split(['.', '/', ':', '#', '\\', ' ']);
    let tidy = |part: &str| -> String {
        let characters = part.chars().map(|character| {
            if character.is_alphanumeric() || character == '_' || character == '-' {
                character
            } else {
                '-'
            }
        });
        characters.collect()
    };
    let mut segments: Vec<Segment> = parts
        .filter(|part| !part.is_empty())
        .map(|part| Segment::Literal(tidy(part)))
        .collect();
    if segments.is_empty() {
        segments.push(Segment::Literal("method".to_owned()));
    }
    segments
}

/// Drafts a route from the values of its call.
fn assemble(rest: &RestOperation, rpc: &RpcOperation, bindings: &Bindings) -> Drafted {
    // The short form carries a form as texts, so it has no typed fields.
    let may_be_short = rest.form.is_none() || !rest.names_members();
    let short = may_be_short && bindings.is_short(rest, rpc.call);
    let has_no_body = rest.body == BodyModel::None && rest.short_form_carries();
    let method = match rpc.call {
        CallModel::ByName | CallModel::ByPosition => literal(&rpc.name),
        CallModel::Tool => "tools/call".to_owned(),
    };
    let others = bindings.has_others.then(|| bindings.free("others"));
    let name = if rpc.name.is_empty() {
        rest.title()
    } else {
        rpc.name.clone()
    };
    let body = if short && has_no_body {
        Some(Pattern::Text("none".to_owned()))
    } else if short {
        None
    } else {
        body(rest, bindings, others.as_deref())
    };
    let headers = bindings
        .bounds
        .iter()
        .filter_map(|bound| match &bound.rest {
            RestLocation::Header(name) => Some((name.clone(), Pattern::Text(bound.declared()))),
            RestLocation::Path(_)
            | RestLocation::Query(_)
            | RestLocation::Member(_)
            | RestLocation::Body => None,
        });
    Drafted {
        name: route_name(&name),
        rest: format!("{} {}", rest.method, url(rest, bindings)),
        rpc: method,
        // QUERY is safe (RFC 10008 §2); the HTTP library does not know it.
        effect: (rest.method == "QUERY").then_some("safe"),
        stream: rest.stream.map(StreamFormat::as_str),
        headers: headers.collect(),
        unread: rest
            .unread
            .iter()
            .chain(&bindings.unread)
            .cloned()
            .collect(),
        params: (!short).then(|| params(rest, rpc, bindings, others.as_deref())),
        body_format: rest
            .form
            .as_ref()
            .filter(|_| short || body.is_some())
            .map(|form| form.format.as_str()),
        body,
        bounds: bindings.bounds.clone(),
        files: form::files(rest, bindings),
        has_others: bindings.has_others,
        // The short form names no members.
        refused: bindings.same_names().filter(|_| !short),
        ..Drafted::default()
    }
}

fn url(rest: &RestOperation, bindings: &Bindings) -> String {
    let mut url = String::new();
    let in_path = bindings
        .bounds
        .iter()
        .filter_map(|bound| match &bound.rest {
            RestLocation::Path(name) => Some((name.as_str(), bound)),
            RestLocation::Query(_)
            | RestLocation::Header(_)
            | RestLocation::Member(_)
            | RestLocation::Body => None,
        });
    let in_path: BTreeMap<&str, &BoundParameter> = in_path.collect();
    let declared = |name: &str| Some(in_path.get(name)?.declared());
    for segment in &rest.segments {
        url.push('/');
        let segment = segment.render(str::to_owned, declared);
        url.push_str(&segment.unwrap_or_default());
    }
    if url.is_empty() {
        url.push('/');
    }
    let mut sign = '?';
    for bound in &bindings.bounds {
        if let RestLocation::Query(key) = &bound.rest {
            url.push(sign);
            percent::encode(key, Keep::Nothing, &mut url);
            url.push('=');
            url.push_str(&bound.declared());
            sign = '&';
        }
    }
    url
}

fn body(rest: &RestOperation, bindings: &Bindings, others: Option<&str>) -> Option<Pattern> {
    let mut members = Vec::new();
    for bound in &bindings.bounds {
        match &bound.rest {
            RestLocation::Body => return Some(Pattern::Text(bound.declared())),
            RestLocation::Member(name) => {
                let pattern = match rest.field(name) {
                    Some(kind) => form::field(kind, bound, bindings),
                    None => Pattern::Text(bound.declared()),
                };
                members.push((name.clone(), pattern));
            }
            RestLocation::Path(_) | RestLocation::Query(_) | RestLocation::Header(_) => {}
        }
    }
    members.extend(others.map(unnamed_members));
    (!members.is_empty()).then_some(Pattern::Object(members))
}

/// Renders the unnamed members of an object.
fn unnamed_members(hole: &str) -> (String, Pattern) {
    ("...".to_owned(), Pattern::Text(format!("{{{hole}}}")))
}

fn params(
    rest: &RestOperation,
    rpc: &RpcOperation,
    bindings: &Bindings,
    others: Option<&str>,
) -> Pattern {
    let mut positions: ParamPatterns<usize> = ParamPatterns::default();
    let mut members: ParamPatterns<String> = ParamPatterns::default();
    for bound in &bindings.bounds {
        let kind = match &bound.rest {
            RestLocation::Member(name) => rest.field(name),
            RestLocation::Path(_)
            | RestLocation::Query(_)
            | RestLocation::Header(_)
            | RestLocation::Body => None,
        };
        let (hole, beside) = form::param(kind, bound, bindings);
        match &bound.rpc {
            RpcLocation::Named(name) => {
                members.add(name.clone(), hole);
                for (name, hole) in beside {
                    members.add(name, hole);
                }
            }
            RpcLocation::Position(at) => positions.add(*at, hole),
            RpcLocation::Inside(object, member) => {
                let member = member.clone();
                match &**object {
                    RpcLocation::Named(name) => members.add_inside(name, member, hole),
                    RpcLocation::Position(at) => positions.add_inside(at, member, hole),
                    RpcLocation::Inside(..) | RpcLocation::Twin | RpcLocation::Equal => {}
                }
            }
            RpcLocation::Twin | RpcLocation::Equal => {}
        }
    }
    let (mut positions, mut members) = (positions.all, members.all);
    members.extend(others.map(unnamed_members));
    match rpc.call {
        CallModel::ByName => Pattern::Object(members),
        CallModel::ByPosition => {
            positions.sort_by_key(|(at, _)| *at);
            Pattern::List(positions.into_iter().map(|(_, hole)| hole).collect())
        }
        CallModel::Tool => Pattern::Object(vec![
            ("name".to_owned(), Pattern::Text(literal(&rpc.name))),
            ("arguments".to_owned(), Pattern::Object(members)),
        ]),
    }
}

/// Escapes the braces of a literal text.
fn literal(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// Renders a method name as a route name: `tools/call` → `tools.call`.
fn route_name(name: &str) -> String {
    const LONGEST: usize = 80;
    let mut found = String::new();
    for character in name.chars() {
        if character.is_ascii_alphanumeric() || character == '_' || character == '-' {
            found.push(character);
        } else if !found.is_empty() && !found.ends_with('.') {
            found.push('.');
        }
    }
    found.truncate(LONGEST);
    let found = found.trim_end_matches('.');
    if found.is_empty() {
        "route".to_owned()
    } else {
        found.to_owned()
    }
}
