//! `[[route]]` Used by `decode` and `decode::stream`.

use std::time::Duration;

use super::old::LeftSide;
use super::route_docs::DOCS;
use super::{
    compare, example, lifecycle, old, outcome, route_docs, route_stream, route_subscription,
};
use crate::config::key::{
    Key, List, Rule, SubTable, TableShape, Tree, key, list, one_or_many, section, table, tree,
    tree_table,
};
use crate::config::kind::{NAME, TEXT, TIMEOUT, boolean, words};
use crate::config::problem::Spanned;
use crate::config::raw::{RawOld, RawRoute};
use crate::config::table_reader::{Shape, Table};
use dualgauge_model::form::BodyFormat;
use dualgauge_model::route::{Effect, Extra, ResultForm};
use dualgauge_model::stream_format::RouteStream;
use dualgauge_patterns::side::Side;

const EFFECTS: &[(&str, Effect)] = &[
    ("safe", Effect::Safe),
    ("idempotent", Effect::Idempotent),
    ("unsafe", Effect::Unsafe),
];
const RESULTS: &[(&str, ResultForm)] = &[("plain", ResultForm::Plain), ("tool", ResultForm::Tool)];
const STAGES: &[(&str, ())] = &[("passthrough", ())];
const EXTRAS: &[(&str, Extra)] = &[
    ("drop", Extra::Drop),
    ("reject", Extra::Reject),
    ("carry", Extra::Carry),
];

const BODY_FORMATS: &[(&str, BodyFormat)] = &[
    ("json", BodyFormat::Json),
    ("form", BodyFormat::Form),
    ("multipart", BodyFormat::Multipart),
];

section! {
    /// Upstreams by side.
    pub(super) BY_SIDE {
        /// Name of the REST upstream
        OF_REST: Key<String> = key("rest", NAME);
        /// Name of the RPC upstream
        OF_RPC: Key<String> = key("rpc", NAME);
    }
}

section! {
    /// `[[route]]`
    pub(super) ROUTE + DOCS {
        /// Unique name, for flags, metrics and logs
        ROUTE_NAME: Key<String> = key("name", NAME).required();
        /// HTTP method and URL pattern
        REST: Key<String> = key("rest", TEXT);
        /// Message of an old RPC dialect, in place of `rest`
        OLD: SubTable = table("old", &old::OLD);
        /// Message of an old dialect on a WebSocket: short for `old.message`
        FRAME: Tree = tree("frame");
        /// Beside `frame`: time without a reply, after which the outcome without `frame` applies
        SILENCE: Key<Duration> = key("silence", TIMEOUT);
        /// RPC method, with optional holes
        RPC: Key<String> = key("rpc", TEXT).required();
        /// Pattern of the RPC params; short form if absent
        PARAMS: Tree = tree("params");
        /// Patterns of headers of the request to an RPC server, in lower case
        RPC_HEADERS: Tree = tree_table("rpc_headers");
        /// Pattern of the request body
        BODY: Tree = tree("body");
        /// Format of the request body; `"json"` by default
        BODY_FORMAT: Key<BodyFormat> = key("body_format", words(BODY_FORMATS));
        /// Patterns of query parameters
        QUERY: Tree = tree_table("query");
        /// Patterns of headers, in lower case
        HEADERS: Tree = tree_table("headers");
        /// Unknown members; by the form of the route if absent
        EXTRA: Key<Extra> = key("extra", words(EXTRAS));
        /// Query names that translation drops; those of all routes if absent
        IGNORE_QUERY: List<String> = list("ignore_query", TEXT);
        /// Names of routes that take the calls which fit both
        AFTER: List<String> = one_or_many("after", TEXT);
        /// The only entry side; both if absent
        FROM: Key<old::FromWord> = key("from", words(old::FROM));
        /// The only stage of its calls, whatever flags and defaults say
        STAGE: Key<()> = key("stage", words(STAGES));
        /// Translated REST calls become notifications; `false` by default
        NOTIFY: Key<bool> = key("notify", boolean(&[false, true]));
        /// Effect of a call, which decides whether it may be repeated; by its HTTP method if absent
        EFFECT: Key<Effect> = key("effect", words(EFFECTS));
        /// Form of a tool's result on its REST side: the result itself, or the value of the tool
        RESULT: Key<ResultForm> = key("result", words(RESULTS)).or("plain");
        /// Longest wait for the response; that of the upstream if absent
        CALL_TIMEOUT: Key<Duration> = key("timeout", TIMEOUT);
        /// Format of responses that stream on the REST side, or `false` to refuse them; if absent, event streams are translated
        STREAM: Key<RouteStream> = key("stream", route_stream::STREAM);
        /// Formats of responses that stream, by side
        STREAMS: SubTable = table("stream", &route_stream::STREAM_BY_SIDE);
        /// Longest duration of a response that streams; unlimited if absent
        STREAM_TIMEOUT: Key<Duration> = key("stream_timeout", TIMEOUT);
        /// The call opens a subscription, whose notifications are the events of the response
        SUBSCRIPTION: SubTable = table("subscription", &route_subscription::SUBSCRIPTION);
        /// Hole that identifies a session
        AFFINITY: Key<String> = key("affinity", TEXT);
        /// Replacement, named to clients of a deprecated or retired side
        SUCCESSOR: Key<String> = key("successor", TEXT);
        /// Leaves the route out of `[deprecated]`
        NEVER: Key<()> = key("deprecated", lifecycle::NEVER);
        /// End of one side; that of `[deprecated]` if absent
        DEPRECATED: SubTable = table("deprecated", &lifecycle::DEPRECATED);
        /// Reason for an accepted loss
        LOSSY: Key<String> = key("lossy", TEXT);
        /// Name of an upstream; the default of each side if absent
        UPSTREAM: Key<String> = key("upstream", NAME);
        /// Names of upstreams, by side
        UPSTREAMS: SubTable = table("upstream", &BY_SIDE);
        /// Outcomes of the route
        OUTCOME: SubTable = table("outcome", &outcome::ROW).of(TableShape::List);
        /// Names of outcome sets
        OUTCOMES: List<String> = one_or_many("outcomes", TEXT);
        /// Calls that `check` translates both ways
        EXAMPLE: SubTable = table("example", &example::EXAMPLE).of(TableShape::List);
        /// JSON Schemas of params and result
        SCHEMA: SubTable = table("schema", &route_docs::SCHEMAS);
        /// Further comparison rules
        COMPARE: SubTable = table("compare", &compare::COMPARE);
    }
    rules [
        Rule::ExactlyOne(&["rest", "old", "frame"]),
        Rule::Excludes("old", &["query", "headers", "body", "body_format"]),
        Rule::Excludes("frame", &["query", "headers", "body"]),
        Rule::Needs("silence", &["frame", "old"]),
        Rule::Excludes("subscription", &["frame", "old", "notify"]),
    ]
}

pub(super) fn route(table: &mut Table<'_>) -> Option<RawRoute> {
    let here = table.here();
    let name = table.get(&ROUTE_NAME);
    let left = left_side(table);
    let silence = old::silence(table, &SILENCE, left.old == Some(RawOld::Socket));
    let (rpc, extra, lossy) = (table.get(&RPC), table.get(&EXTRA), table.get(&LOSSY));
    let (params, rpc_headers) = (table.tree(&PARAMS), table.trees(&RPC_HEADERS));
    let (body_format, result) = (table.get(&BODY_FORMAT), table.get(&RESULT));
    let ignore_query = ignore_query(table);
    let (after, from) = (table.list(&AFTER), old::from(table, &FROM));
    let (stage, notify, effect) = (table.get(&STAGE), table.get(&NOTIFY), table.get(&EFFECT));
    let (timeout, affinity) = (table.get(&CALL_TIMEOUT), table.get(&AFFINITY));
    let (stream, stream_timeout) = route_stream::stream(table, &STREAM, &STREAMS, &STREAM_TIMEOUT);
    let subscription = route_subscription::subscription(table, &SUBSCRIPTION);
    let successor = table.get(&SUCCESSOR);
    let deprecated = lifecycle::end(table, &NEVER, &DEPRECATED);
    let upstreams = upstreams(table, &UPSTREAM, &UPSTREAMS);
    let (rows, sets) = (table.tables(&OUTCOME, outcome::row), table.list(&OUTCOMES));
    let examples = table.tables(&EXAMPLE, example::example);
    let schema = table.table(&SCHEMA, |table| Some(route_docs::schemas(table)));
    let docs = route_docs::docs(table);
    let compare = table.table(&COMPARE, compare::compare);
    Some(RawRoute {
        place: here.place,
        key: here.key,
        is_paired: false,
        name: name?,
        rest: left.rest?,
        old: left.old,
        silence,
        rpc: rpc?,
        params,
        body: left.body,
        body_format,
        query: left.query?,
        headers: left.headers?,
        rpc_headers: rpc_headers?,
        extra,
        ignore_query: ignore_query?,
        after: after?,
        from,
        stage,
        notify,
        effect,
        timeout,
        stream,
        stream_timeout,
        subscription,
        affinity,
        successor,
        deprecated,
        lossy,
        upstreams,
        rows,
        sets: sets?,
        examples,
        schema: schema.unwrap_or_default(),
        docs: docs?,
        result,
        compare: compare.unwrap_or_default(),
    })
}

/// Decodes the left form of a route.
fn left_side(table: &mut Table<'_>) -> LeftSide {
    let old = old::old(table, &OLD, &FRAME, ROUTE.rules);
    let (query, headers) = (table.trees(&QUERY), table.trees(&HEADERS));
    let body = table.tree(&BODY);
    old.unwrap_or_else(|| LeftSide {
        rest: table.require(&REST),
        old: None,
        query,
        headers,
        body,
    })
}

/// Returns the query parameters that the route ignores; `Some(None)` without a list of its own, `None` if the list is
/// invalid.
fn ignore_query(table: &mut Table<'_>) -> Option<Option<Vec<Spanned<String>>>> {
    match table.shape(IGNORE_QUERY.name) {
        Shape::Absent => Some(None),
        Shape::Table | Shape::Value => table.list(&IGNORE_QUERY).map(Some),
    }
}

/// Decodes a name, or one for each side.
pub(super) fn upstreams(
    table: &mut Table<'_>,
    one: &Key<String>,
    by_side: &SubTable,
) -> Vec<(Option<Side>, Spanned<String>)> {
    if table.shape(one.name) != Shape::Table {
        let one = table.get(one);
        return one.into_iter().map(|name| (None, name)).collect();
    }
    let both = table.table(by_side, |sides| {
        let rest = sides.get(&OF_REST).map(|name| (Some(Side::Rest), name));
        let rpc = sides.get(&OF_RPC).map(|name| (Some(Side::Rpc), name));
        Some(rest.into_iter().chain(rpc).collect())
    });
    both.unwrap_or_default()
}
