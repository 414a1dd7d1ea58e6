//! Routes for the calls of MCP clients before two MCP servers: one for each method, so that flags can choose the server.
//!
//! Used by `decode`.

use crate::config::problem::Spanned;
use crate::config::raw::{RawCompare, RawDocs, RawRoute, RawSchemas, RawUpstream};
use dualgauge_model::route::{Effect, Extra};
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

/// The methods of MCP that clients call, with the effect of a second call. A call of a tool may have any effect; a route
/// of the tool can say so. The answers that describe a server differ between two servers, so they are not compared.
const METHODS: &[(&str, Effect)] = &[
    ("completion/complete", Effect::Safe),
    ("initialize", Effect::Unsafe),
    ("logging/setLevel", Effect::Unsafe),
    ("ping", Effect::Unsafe),
    ("prompts/get", Effect::Safe),
    ("prompts/list", Effect::Safe),
    ("resources/list", Effect::Safe),
    ("resources/read", Effect::Safe),
    ("resources/subscribe", Effect::Unsafe),
    ("resources/templates/list", Effect::Safe),
    ("resources/unsubscribe", Effect::Unsafe),
    ("server/discover", Effect::Unsafe),
    ("subscriptions/listen", Effect::Unsafe),
    ("tools/call", Effect::Unsafe),
    ("tools/list", Effect::Safe),
];

/// Returns the routes for the methods of an upstream with a candidate. A route of the file for all calls of a method, or
/// with its name, takes its place.
pub(super) fn routes(upstreams: &[RawUpstream], own: &[RawRoute]) -> Vec<RawRoute> {
    let Some((upstream, candidate)) = upstreams.iter().find_map(|upstream| {
        let candidate = upstream.candidate.as_ref()?;
        Some((upstream, candidate))
    }) else {
        return Vec::new();
    };
    let is_free = |method: &str| {
        !own.iter().any(|route| {
            let takes_all =
                route.rpc.value == method && !route.params.as_ref().is_some_and(has_literal);
            takes_all || route.name.value == method
        })
    };
    let methods = METHODS.iter().filter(|(method, _)| is_free(method));
    methods
        .map(|(method, effect)| route(upstream, candidate, method, *effect))
        .collect()
}

fn has_literal(params: &SourceTree) -> bool {
    match params {
        SourceTree::Text(text) => !text.contains('{'),
        SourceTree::Literal(_) => true,
        SourceTree::Table(members) => members.iter().any(|(_, member)| has_literal(member)),
        SourceTree::List(elements) => elements.iter().any(has_literal),
    }
}

/// Returns the route of a method. Its REST side is never used: clients cannot call it, and both servers speak MCP.
fn route(
    upstream: &RawUpstream,
    candidate: &Spanned<String>,
    method: &str,
    effect: Effect,
) -> RawRoute {
    let said = |text: String| candidate.clone().map(|_| text);
    RawRoute {
        place: candidate.place.clone(),
        key: candidate.key.clone(),
        is_paired: true,
        name: said(method.to_owned()),
        rest: said(format!("POST /.mcp/{method}")),
        old: None,
        rpc_headers: Vec::new(),
        silence: None,
        rpc: said(method.to_owned()),
        params: None,
        body: None,
        query: Vec::new(),
        headers: Vec::new(),
        body_format: None,
        extra: Some(candidate.clone().map(|_| Extra::Carry)),
        ignore_query: None,
        after: Vec::new(),
        from: Some(candidate.clone().map(|_| Side::Rpc)),
        stage: None,
        notify: None,
        effect: Some(candidate.clone().map(|_| effect)),
        timeout: None,
        stream: None,
        stream_timeout: None,
        subscription: None,
        affinity: None,
        successor: None,
        deprecated: None,
        lossy: None,
        upstreams: vec![(Some(Side::Rpc), upstream.name.clone())],
        rows: Vec::new(),
        sets: Vec::new(),
        examples: Vec::new(),
        schema: RawSchemas::default(),
        docs: RawDocs::default(),
        result: None,
        compare: RawCompare::default(),
    }
}
