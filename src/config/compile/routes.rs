//! Routes: each is compiled separately, then all of them as one table.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::Method;
use serde_json::{Map, Value};

use crate::config::compile::declared_responses::{declared_failures, declared_successes};
use crate::config::compile::outcome_sets::OutcomeSets;
use crate::config::problem::{Problem, SourceMap, Spanned};
use crate::config::raw::{RawConfig, RawOld, RawRoute, RawSchema};
use dualgauge_model::document::{Messages, bundled};
use dualgauge_model::identity_headers::HeaderPattern;
use dualgauge_model::outcome::RowSource;
use dualgauge_model::rollout::Glob;
use dualgauge_model::route::{
    DescribedSchema, HttpPass, OldSource, Route, RouteDocs, RouteSource, RouteTable, Schemas,
    Segments, indistinguishable, parse_route, without_slash,
};
use dualgauge_patterns::schema::Schema;
use dualgauge_patterns::side::Side;

/// Compiles the table of all valid routes; overlaps among them are reported even if other routes are invalid.
pub(super) fn compile(raw: &RawConfig, problems: &mut Vec<Problem>) -> RouteTable {
    let shared = shared_schemas(raw);
    let mut sets = OutcomeSets::new(raw);
    let mut sources = Vec::with_capacity(raw.routes.len());
    let mut routes = Vec::with_capacity(raw.routes.len());
    for source in &raw.routes {
        let rows = sets.rows(source, problems);
        let schema = schemas(source, &shared, problems);
        let mut words = words(source, rows, schema);
        words.rest = rest_line(source, &raw.rpc.paths);
        words.old = (source.old.as_ref()).map(|source| old(source, &raw.rpc.paths));
        for example in &mut words.examples {
            // An example of an old message has the target of its route, unless it says so.
            if example.call.is_empty() {
                example.call.clone_from(&words.rest);
            }
        }
        words.docs = docs(source, &shared);
        words.docs.successes = declared_successes(source, &shared, problems);
        words.docs.failures = declared_failures(source, &shared, problems);
        words.ignore_query = ignored(source, &raw.ignore_query);
        let read = parse_route(words);
        let errors = read.as_ref().err().map_or(&[][..], Vec::as_slice);
        for error in sets.errors(source, errors) {
            let key = in_message(source, &error.key);
            problems.push(raw.places.problem(&key, &error.what));
        }
        if let Ok(mut route) = read {
            let status = raw.rpc.tool_error_status.value;
            route.outcomes.set_tool_error_status(status);
            check_rpc_paths(source, &route, &raw.rpc.paths, problems);
            check_captured_headers(source, &route, raw, problems);
            sources.push(source);
            routes.push(route);
        }
    }
    sets.finish(&raw.places, problems);
    // The fault of a route that `after` names is reported already.
    let is_refused = |name: &String| {
        raw.routes.iter().any(|route| route.name.value == *name)
            && sources.iter().all(|route| route.name.value != *name)
    };
    for route in &mut routes {
        route.after.retain(|name| !is_refused(name));
    }
    let paths: Vec<&str> = raw.rpc.paths.iter().map(|path| &*path.value).collect();
    let mut errors = indistinguishable(&routes, &paths);
    let built = RouteTable::build(routes);
    errors.extend(built.as_ref().err().into_iter().flatten().cloned());
    match built {
        Ok(table) if errors.is_empty() => table,
        Ok(_) | Err(_) => {
            let refused = errors.iter().map(|error| sources[error.route].key.as_str());
            let rest = without(raw, &refused.collect());
            // Names that are used twice are reported where they are decoded.
            errors.retain(|error| error.key != "name");
            let located = errors.into_iter().map(|error| {
                let source = sources[error.route];
                spanned_key(source, error.key, &raw.places).problem(error.what)
            });
            problems.extend(located);
            // The partial table is for `check`; the problems are already reported.
            compile(&rest, &mut Vec::new())
        }
    }
}

fn without(raw: &RawConfig, refused: &BTreeSet<&str>) -> RawConfig {
    let mut rest = raw.clone();
    let is_refused = |route: &RawRoute| refused.contains(route.key.as_str());
    let names = raw.routes.iter().filter(|route| is_refused(route));
    let names: BTreeSet<&str> = names.map(|route| &*route.name.value).collect();
    rest.routes.retain(|route| !is_refused(route));
    for route in &mut rest.routes {
        route.after.retain(|name| !names.contains(&*name.value));
    }
    rest
}

/// Returns a key of a problem as the configuration spells it: `old.message` is short for `frame`.
fn in_message(raw: &RawRoute, key: &str) -> String {
    let part = key.strip_prefix(&*raw.key);
    let part = part.and_then(|part| part.strip_prefix(".frame"));
    match part.filter(|_| raw.rest.key.ends_with(".old")) {
        Some(part) => format!("{}.old.message{part}", raw.key),
        None => key.to_owned(),
    }
}

/// Returns the REST side of a route. An old message without a path goes to the first RPC path.
fn rest_line(raw: &RawRoute, paths: &[Spanned<String>]) -> String {
    let line = &raw.rest.value;
    match (&raw.old, paths.first()) {
        (
            Some(RawOld::Http {
                is_on_rpc_paths: true,
                ..
            }),
            Some(path),
        ) => format!("{line} {}", literal(path)),
        (Some(_) | None, _) => line.clone(),
    }
}

/// Returns an RPC path as the pattern of this path only.
fn literal(path: &Spanned<String>) -> String {
    path.value.replace('{', "%7B").replace('}', "%7D")
}

fn old(raw: &RawOld, paths: &[Spanned<String>]) -> OldSource {
    let RawOld::Http {
        is_on_rpc_paths,
        parameter,
        pass_statuses,
        pass_headers,
    } = raw
    else {
        return OldSource::on_socket();
    };
    // Without a path of its own, a message arrives at each RPC path and goes to the first.
    // A repeated path is a problem of its own.
    let mut known: Vec<String> = Vec::new();
    for path in paths.iter().filter(|_| *is_on_rpc_paths) {
        let path = Segments::split(&literal(path)).normal();
        if !known.contains(&path) {
            known.push(path);
        }
    }
    let statuses = pass_statuses.iter().map(|status| status.value);
    let headers = pass_headers.iter().map(|header| header.value.clone());
    OldSource {
        is_on_socket: false,
        pass: HttpPass {
            statuses: statuses.collect(),
            headers: headers.collect(),
        },
        paths: known.into_iter().skip(1).collect(),
        parameter: text(parameter.as_ref()),
    }
}

fn words(raw: &RawRoute, rows: Vec<RowSource>, schema: Schemas) -> RouteSource {
    RouteSource {
        key: raw.key.clone(),
        is_paired: raw.is_paired,
        name: raw.name.value.clone(),
        rest: raw.rest.value.clone(),
        old: None,
        silence: raw.silence.as_ref().map(|silence| silence.value),
        rpc: raw.rpc.value.clone(),
        params: raw.params.clone(),
        body: raw.body.clone(),
        body_format: raw
            .body_format
            .as_ref()
            .map(|format| format.value)
            .unwrap_or_default(),
        query: raw.query.clone(),
        headers: raw.headers.clone(),
        rpc_headers: raw.rpc_headers.clone(),
        extra: raw.extra.as_ref().map(|extra| extra.value),
        ignore_query: Vec::new(),
        after: raw.after.iter().map(|name| name.value.clone()).collect(),
        from: raw.from.as_ref().map(|from| from.value),
        always_passes: raw.stage.is_some(),
        is_notification: raw.notify.as_ref().is_some_and(|notify| notify.value),
        effect: raw.effect.as_ref().map(|effect| effect.value),
        timeout: raw.timeout.as_ref().map(|timeout| timeout.value),
        stream: raw
            .stream
            .as_ref()
            .map(|stream| stream.value)
            .unwrap_or_default(),
        stream_timeout: raw.stream_timeout.as_ref().map(|timeout| timeout.value),
        subscription: raw.subscription.as_ref().map(|one| one.value.clone()),
        affinity: text(raw.affinity.as_ref()),
        successor: text(raw.successor.as_ref()),
        rows,
        lossy: text(raw.lossy.as_ref()),
        examples: raw.examples.clone(),
        schema,
        docs: RouteDocs::default(),
        result: raw
            .result
            .as_ref()
            .map(|form| form.value)
            .unwrap_or_default(),
    }
}

/// Returns the query parameters that a route ignores: its own list, else the global one.
fn ignored(raw: &RawRoute, usual: &[Spanned<String>]) -> Vec<Glob> {
    let own = raw.ignore_query.as_deref().unwrap_or(usual);
    own.iter()
        .map(|glob| Glob::new(glob.value.as_str()))
        .collect()
}

fn text(configured: Option<&Spanned<String>>) -> Option<String> {
    configured.map(|text| text.value.clone())
}

/// Returns `[schemas]` by name.
fn shared_schemas(raw: &RawConfig) -> Arc<Map<String, Value>> {
    let shared = raw.schemas.iter();
    let shared = shared.map(|(name, schema)| (name.value.clone(), schema.clone()));
    Arc::new(shared.collect())
}

/// Compiles the schemas that calls and results are checked against.
fn schemas(
    raw: &RawRoute,
    shared: &Arc<Map<String, Value>>,
    problems: &mut Vec<Problem>,
) -> Schemas {
    let validate = raw.schema.validate.as_ref();
    let is_checked = validate.is_none_or(|validate| validate.value);
    let mut schema = |configured: &Option<Spanned<RawSchema>>, messages: Messages| {
        let configured = configured.as_ref()?;
        let described = described(configured, shared)?;
        let whole = match bundled(&described, messages) {
            Ok(whole) => whole,
            Err(message) => {
                problems.push(configured.problem(message));
                return None;
            }
        };
        // A schema that only documents is not compiled: it may have what the validator does not know.
        if !is_checked {
            return None;
        }
        match Schema::compile(&whole) {
            Ok(schema) => Some(Arc::new(schema)),
            Err(message) => {
                problems.push(configured.problem(message));
                None
            }
        }
    };
    Schemas {
        params: schema(&raw.schema.params, Messages::Requests),
        result: schema(&raw.schema.result, Messages::Responses),
    }
}

fn described(
    configured: &Spanned<RawSchema>,
    shared: &Arc<Map<String, Value>>,
) -> Option<DescribedSchema> {
    match &configured.value {
        RawSchema::Written(value) => Some(DescribedSchema {
            schema: Arc::new(value.clone()),
            shared: shared.clone(),
        }),
        // An unreadable file is already reported.
        RawSchema::File(_) => None,
    }
}

fn docs(raw: &RawRoute, shared: &Arc<Map<String, Value>>) -> RouteDocs {
    let schema = |configured: &Option<Spanned<RawSchema>>| described(configured.as_ref()?, shared);
    RouteDocs {
        title: text(raw.docs.title.as_ref()),
        summary: text(raw.docs.summary.as_ref()),
        description: text(raw.docs.description.as_ref()),
        body: text(raw.docs.body.as_ref()),
        tags: raw.docs.tags.iter().map(|tag| tag.value.clone()).collect(),
        params: schema(&raw.schema.params),
        result: schema(&raw.schema.result),
        successes: Vec::new(),
        failures: Vec::new(),
    }
}

/// Returns the value that a table error concerns.
fn spanned_key(raw: &RawRoute, key: &str, places: &SourceMap) -> Spanned<()> {
    let known = match key {
        "rest" => &raw.rest,
        "rpc" => &raw.rpc,
        "name" => &raw.name,
        other => {
            let key = format!("{}.{other}", raw.key);
            return Spanned {
                value: (),
                place: places.nearest(&key),
                key,
            };
        }
    };
    known.clone().map(|_| ())
}

/// Rejects routes for POST on an RPC path: it is JSON-RPC, so they would never be called.
fn check_rpc_paths(
    raw: &RawRoute,
    route: &Route,
    paths: &[Spanned<String>],
    problems: &mut Vec<Problem>,
) {
    if route.is_old() || route.method != Method::POST || route.from == Some(Side::Rpc) {
        return;
    }
    let Some(own) = route.rest_call.path.literal() else {
        return;
    };
    let is_same = |path: &&Spanned<String>| {
        without_slash(&Segments::split(&path.value).normal()) == without_slash(&own)
    };
    if let Some(path) = paths.iter().find(is_same) {
        let message = format!(
            "`POST {own}` is matched by {}, so the route is never called",
            path.key
        );
        let hint = format!(
            "remove `{}` from `rpc.paths`, or change the route",
            path.value
        );
        problems.push(raw.rest.problem(message).hint(hint));
    }
}

/// Rejects captures of headers that `listen` removes or sets, since an RPC client could write them.
fn check_captured_headers(
    source: &RawRoute,
    route: &Route,
    raw: &RawConfig,
    problems: &mut Vec<Problem>,
) {
    if route.from == Some(Side::Rest) {
        return;
    }
    for capture in &route.rest_call.header_prefixes {
        let prefix = &capture.prefix;
        let removed = raw.listen.remove_headers.iter();
        let removed = removed.map(|pattern| (&pattern.key, pattern.value.clone()));
        let written = raw.listen.set_headers.iter();
        let written = written.filter_map(|(name, _)| {
            Some((&name.key, HeaderPattern::parse(name.value.as_str()).ok()?))
        });
        let mut guarded = removed.chain(written);
        let Some((key, pattern)) = guarded.find(|(_, pattern)| pattern.fits_after(prefix)) else {
            continue;
        };
        let message =
            format!("it captures `{pattern}` of `{key}`, so an RPC client could write it");
        let hint =
            "write a longer prefix, name each header, or enter the route `from` the REST side only";
        let key = format!("{}.headers.\"{prefix}...\"", source.key);
        problems.push(raw.places.problem(&key, message).hint(hint));
    }
}
