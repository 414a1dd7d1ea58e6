//! Decoding of the merged tree into [`crate::config::raw`]: the known keys with their kinds, defaults and meanings.
//!
//! Each module declares the keys of its tables beside the function that reads them; [`CONFIG`] is the root. Patterns
//! are not interpreted here, and neither are free-form values.
//!
//! Used by `json_schema`, `load` and `other_files`.

mod addresses;
mod bearer;
mod candidates;
mod compare;
mod cors;
mod envelope;
mod event;
mod example;
mod failures;
pub(super) mod guard;
mod headers;
pub(super) mod identity;
mod lifecycle;
mod limits;
mod link;
mod listen;
mod local;
mod log;
mod login;
mod mcp;
mod metrics;
mod old;
mod outcome;
mod pair;
mod record;
mod rollout;
mod route;
mod route_docs;
mod route_stream;
mod route_subscription;
mod rpc;
pub(super) mod shared;
mod source;
mod stdio;
mod store;
mod stream;
mod tls;
mod trace;
mod upstream;
mod websocket;

use crate::config::key::{
    Key, List, SubTable, TableShape, Tree, key, list, section, table, tree_table,
};
use crate::config::kind::{TEXT, words};
use crate::config::problem::SourceMap;
use crate::config::raw::{RawConfig, RawRoute, RawSet, RawStream};
use crate::config::table_reader::{Table, unique};
use dualgauge_model::plan::Unrouted;

const UNROUTED_WORDS: &[(&str, Unrouted)] = &[
    ("passthrough", Unrouted::Passthrough),
    ("reject", Unrouted::Reject),
    ("unavailable", Unrouted::Unavailable),
];
/// The words of `unrouted_irregular`: true if such calls are refused.
const IRREGULAR_WORDS: &[(&str, bool)] = &[("pass", false), ("reject", true)];

section! {
    /// The main file.
    pub(super) CONFIG {
        /// Files with routes, outcome sets, streams, events and local answers; `*` and `?` in the file name
        INCLUDE: List<String> = list("include", TEXT);
        /// Listener for calls
        LISTEN: SubTable = table("listen", &listen::LISTEN).implied();
        /// Listener for health, metrics and the admin API
        ADMIN: SubTable = table("admin", &listen::ADMIN).implied();
        /// Servers, by name
        UPSTREAM: SubTable = table("upstream", &upstream::UPSTREAM).of(TableShape::Named);
        /// JSON-RPC with clients
        RPC: SubTable = table("rpc", &rpc::RPC).implied();
        /// Sizes, counts and times
        LIMITS: SubTable = table("limits", &limits::LIMITS).implied();
        /// Flags, stages and the state of both
        ROLLOUT: SubTable = table("rollout", &rollout::ROLLOUT).implied();
        /// REST calls without a route
        UNROUTED: Key<Unrouted> = key("unrouted", words(UNROUTED_WORDS)).or("passthrough");
        /// Unrouted calls whose path a lenient server may read as that of a route
        UNROUTED_IRREGULAR: Key<bool> = key("unrouted_irregular", words(IRREGULAR_WORDS)).or("pass");
        /// Query names that translation drops, unless the route has a list
        IGNORE_QUERY: List<String> = list("ignore_query", TEXT).or(&["utm_*", "gclid", "fbclid", "_"]);
        /// Clients, in order
        CLIENT: SubTable = table("client", &identity::CLIENT).of(TableShape::List);
        /// Routes
        ROUTE: SubTable = table("route", &route::ROUTE).of(TableShape::List);
        /// JSON Schemas that schemas of routes refer to as `#/schemas/NAME`, each a table or JSON as a text
        SHARED_SCHEMAS: Tree = tree_table("schemas");
        /// Event streams
        STREAM: SubTable = table("stream", &stream::STREAM).of(TableShape::List);
        /// Events
        EVENT: SubTable = table("event", &event::EVENT).of(TableShape::List);
        /// Sets of outcomes, by name
        OUTCOMES: SubTable = table("outcomes", &outcome::ROW).of(TableShape::NamedLists);
        /// Answers of the proxy itself
        LOCAL: SubTable = table("local", &local::LOCAL).of(TableShape::List);
        /// Pages of other origins
        CORS: SubTable = table("cors", &cors::CORS);
        /// Comparison rules for all routes
        COMPARE: SubTable = table("compare", &compare::COMPARE);
        /// End of one side, on routes without `deprecated`
        DEPRECATED: SubTable = table("deprecated", &lifecycle::DEPRECATED);
        /// Traces; without it the proxy only forwards those of callers
        TRACE: SubTable = table("trace", &trace::TRACE);
        /// Recordings of calls
        RECORD: SubTable = table("record", &record::RECORD);
        /// Number and labels of metric series
        METRICS: SubTable = table("metrics", &metrics::METRICS);
        /// Log lines
        LOG: SubTable = table("log", &log::LOG).implied();
    }
}

/// Checks that routes and streams have different names.
fn unique_names(routes: &[RawRoute], streams: &[RawStream], table: &mut Table<'_>) {
    let names = routes.iter().map(|route| &route.name);
    let names = names.chain(streams.iter().map(|stream| &stream.name));
    unique(names, table);
}

/// Decodes the outcome sets.
pub(super) fn outcome_sets(table: &mut Table<'_>) -> Vec<RawSet> {
    let sets = table.named_lists(&OUTCOMES, outcome::row).into_iter();
    let sets = sets.map(|(name, rows)| RawSet { name, rows });
    sets.collect()
}

/// Decodes the whole configuration.
pub(super) fn config(table: &mut Table<'_>) -> Option<RawConfig> {
    table.list(&INCLUDE);
    let listen = table.table(&LISTEN, listen::listen);
    let admin = table.table(&ADMIN, listen::admin);
    let upstreams = table.named_tables(&UPSTREAM, upstream::upstream);
    let rpc = table.table(&RPC, rpc::rpc);
    let limits = table.table(&LIMITS, limits::limits);
    let rollout = table.table(&ROLLOUT, rollout::rollout);
    let unrouted = table.get(&UNROUTED);
    let rejects_irregular = table.get(&UNROUTED_IRREGULAR);
    let ignore_query = table.list(&IGNORE_QUERY);
    let clients = table.tables(&CLIENT, identity::client);
    unique(clients.iter().map(|client| &client.name), table);
    let mut routes = table.tables(&ROUTE, route::route);
    routes.extend(pair::routes(&upstreams, &routes));
    let schemas = route_docs::shared(table, &SHARED_SCHEMAS);
    let streams = table.tables(&STREAM, stream::stream);
    let events = table.tables(&EVENT, event::event);
    unique_names(&routes, &streams, table);
    let sets = outcome_sets(table);
    let locals = table.tables(&LOCAL, local::local);
    let cors = table.table(&CORS, cors::cors);
    let compare = table.table(&COMPARE, compare::compare);
    let deprecated = table.table(&DEPRECATED, lifecycle::deprecated);
    let trace = table.table(&TRACE, trace::trace);
    let record = table.table(&RECORD, record::record);
    let metrics = table.table(&METRICS, metrics::metrics);
    let log = table.table(&LOG, log::log);
    let admin = admin?;
    Some(RawConfig {
        file: None,
        files: Vec::new(),
        inherited: Vec::new(),
        listen: listen?,
        admin: admin.address,
        admin_tokens: admin.tokens,
        ready: admin.ready,
        upstreams,
        rpc: rpc?,
        limits: limits?,
        rollout: rollout?,
        unrouted: unrouted?,
        rejects_irregular: rejects_irregular?,
        ignore_query: ignore_query?,
        clients,
        routes,
        sets,
        locals,
        streams,
        events,
        schemas,
        cors,
        compare: compare.unwrap_or_default(),
        deprecated,
        trace,
        record,
        metrics: metrics.unwrap_or_default(),
        places: SourceMap::default(),
        log: log?,
    })
}
