//! Compilation of one route: each part is parsed on its own, then all parts are resolved together.
//!
//! Used by `config`, `model` and `gateway`.

use super::captured::{self, HeaderPrefix, OTHERS};
use super::definition::{RestCall, Route, RpcCall};
use super::docs::RouteDocs;
use super::extra;
use super::form;
use super::headers::{HeaderItem, parse_headers, resolve_headers};
use super::message_parameter;
use super::old;
use super::options::{
    Effect, EmptyBody, Extra, ResultForm, RouteForm, TOOL_CALL, UnknownQuery, has_content,
};
use super::parse::{RestSpelling, parse_query_table, parse_rest};
use super::rpc_side::{self, is_structured, of_rpc_headers, parse_rpc, parse_rpc_headers};
use super::source::RouteSource;
use super::template::{PlacedHole, QueryItem, Template};
use super::url::check_words;
use super::wire::Wire;
use crate::form::BodyFormat;
use crate::outcome::{Outcomes, ToolResult, ToolValue};
use dualgauge_patterns::pattern::{
    HoleFacts, HolePosition, HoleRef, HoleResolver, HoleUse, ObjectPattern, Pattern, PatternError,
    SourceTree, TextPatterns, mention_named,
};
use dualgauge_patterns::side::Side;

/// The hole for the members that a short form or `extra = "carry"` carries; no pattern can use this name.
const CARRIED: &str = "...";

/// The parts of a route, as spelled.
struct RouteDraft {
    rest_protocol: Wire,
    /// True if a short form has a body.
    has_body: bool,
    rest: RestSpelling,
    other_query: Option<HoleRef>,
    headers: Vec<HeaderItem<HoleRef>>,
    header_prefixes: Vec<HeaderPrefix<HoleRef>>,
    body: Option<Pattern<HoleRef>>,
    body_format: BodyFormat,
    method: TextPatterns<HoleRef>,
    params: Pattern<HoleRef>,
    message_parameter: Option<String>,
    other_paths: Vec<Template>,
    rpc_headers: Vec<HeaderItem<HoleRef>>,
}

/// Compiles one route.
///
/// # Errors
/// Returns all faults, each with its key.
pub fn parse_route(mut source: RouteSource) -> Result<Route, Vec<PatternError>> {
    if source.is_notification && source.from == Some(Side::Rest) && !source.rows.is_empty() {
        let what = "a notification has no answer, so no outcome can be used";
        return Err(vec![
            PatternError::new(what).under("notify").under(&source.key),
        ]);
    }
    if let Some(what) = source.unstreamable() {
        return Err(vec![
            PatternError::new(what).under("stream").under(&source.key),
        ]);
    }
    if let Err(error) = source.settle_subscription() {
        return Err(vec![error.under(&source.key)]);
    }
    let rows = std::mem::take(&mut source.rows);
    let (key, rest_protocol) = (source.key.clone(), source.rest_protocol());
    let form = source.result;
    let route = compile(source);
    let mut route = route.map_err(|errors| {
        let errors = errors.into_iter();
        let errors = errors.map(|error| rest_protocol.located(error).under(&key));
        errors.collect::<Vec<_>>()
    })?;
    let tool = if route.rpc == TOOL_CALL {
        ToolResult::Succeeded
    } else {
        ToolResult::Any
    };
    old::refuse_other_speech(&rows, rest_protocol)?;
    route.outcomes = Outcomes::build(rows, &route.facts, tool)?;
    if form == ResultForm::Tool {
        if tool == ToolResult::Any || route.is_frame() {
            let what = "`\"tool\"` needs `rpc = \"tools/call\"` and `rest`: only a tool's result has a value";
            return Err(vec![PatternError::new(what).under("result").under(&key)]);
        }
        route.outcomes.set_tool_value(value_of(&route.docs));
        // Servers that expect JSON refuse a request without content; the arguments of a tool are always an object.
        if has_content(&route.method) && !route.rest_call.format.is_form() {
            route.rest_call.empty = EmptyBody::Sent;
        }
    }
    if route.rest_protocol == Wire::Old {
        route.outcomes.refuse_unmapped_successes();
    } else if route.may_succeed_empty() {
        route.outcomes.take_empty_success();
    }
    let checked = route.check_old_outcomes();
    let checked = checked.and_then(|()| route.check_id());
    let checked = checked.and_then(|()| old::hears_silence(&route));
    checked.map_err(|error| vec![error.under(&key)])?;
    Ok(route)
}

/// Returns the part of a tool's result that is the REST body: a documented value that is no object is always wrapped.
fn value_of(docs: &RouteDocs) -> ToolValue {
    match &docs.result {
        Some(schema) if !schema.is_object() => ToolValue::Wrapped,
        Some(_) | None => ToolValue::Open,
    }
}

fn compile(source: RouteSource) -> Result<Route, Vec<PatternError>> {
    let mut errors = Vec::new();
    let rest_protocol = source.rest_protocol();
    let rest = left_head(&source, &mut errors);
    let method = keep(parse_rpc(&source.rpc), "rpc", &mut errors);
    let query = parse_query_table(&source.query, &mut errors);
    let is_prefix = |(name, _): &(String, SourceTree)| name.ends_with(OTHERS);
    let (prefixes, named): (Vec<_>, Vec<_>) = source.headers.iter().cloned().partition(is_prefix);
    let headers = parse_headers(&named, &mut errors);
    let rpc_headers = parse_rpc_headers(&source.rpc_headers, &mut errors);
    let header_prefixes = captured::parse_prefixes(&prefixes, &mut errors);
    let parts = [
        ("params", source.params.as_ref()),
        (rest_protocol.content(), source.named_body()),
    ];
    let [params, body] = parts.map(|(key, tree)| {
        let pattern = tree.map(SourceTree::pattern).transpose();
        keep(pattern, key, &mut errors).flatten()
    });
    let (Some(mut rest), Some(method)) = (rest, method) else {
        return Err(errors);
    };
    if !errors.is_empty() {
        return Err(errors);
    }
    rest.query.extend(query);
    let parameter = message_parameter::parameter(&source, &rest.query);
    let other_query = captured::other_query(&mut rest.query).map_err(|error| vec![error])?;
    let form = source.form().map_err(|error| vec![error])?;
    let chosen = extra::chosen(&source, form, &rest.method);
    let (has_body, extra) = chosen.map_err(|error| vec![error])?;
    let mut draft = RouteDraft {
        rest_protocol,
        has_body,
        body,
        body_format: source.body_format,
        params: params.unwrap_or_else(|| Pattern::Object(ObjectPattern::new(Vec::new(), None))),
        rest,
        other_query,
        headers,
        header_prefixes,
        method,
        rpc_headers,
        message_parameter: parameter.map_err(|error| vec![error])?,
        other_paths: old::other_paths(&source).map_err(|error| vec![error])?,
    };
    if form == RouteForm::Short {
        draft.spell_out(extra);
    } else if extra == Extra::Carry {
        draft.carry().map_err(|error| vec![error])?;
    }
    draft.check_form().map_err(|error| vec![error])?;
    draft.check_names().map_err(|error| vec![error])?;
    let facts = draft.facts().map_err(|error| vec![error])?;
    draft.finish(source, facts, form, extra)
}

/// Returns the head of the left form.
fn left_head(source: &RouteSource, errors: &mut Vec<PatternError>) -> Option<RestSpelling> {
    let protocol = source.rest_protocol();
    let rest = match protocol {
        Wire::Frame => Some(old::spelling()),
        Wire::Http | Wire::Old => keep(parse_rest(&source.rest), "rest", errors),
    };
    if let Some(rest) = rest.as_ref().filter(|_| protocol.is_old()) {
        errors.extend(old::check(source, rest).err());
    }
    rest
}

fn keep<T>(read: Result<T, PatternError>, key: &str, errors: &mut Vec<PatternError>) -> Option<T> {
    read.map_err(|error| errors.push(error.under(key))).ok()
}

impl RouteDraft {
    /// Expands the short form.
    fn spell_out(&mut self, extra: Extra) {
        let mentions: Vec<&HoleRef> = self.head_mentions().collect();
        let in_method = self.method.mentions();
        let is_member = |mention: &&HoleRef| {
            mention.used == HoleUse::Both
                && mention.name != "_"
                && !in_method.iter().any(|method| method.name == mention.name)
        };
        let mut members: Vec<(String, Pattern<HoleRef>)> = Vec::new();
        for mention in mentions.into_iter().filter(is_member) {
            if members.iter().all(|(name, _)| *name != mention.name) {
                let hole = mention_named(&mention.name, HoleUse::Both, None);
                members.push((mention.name.clone(), Pattern::Hole(hole)));
            }
        }
        let mut rest = None;
        if self.has_body {
            if extra == Extra::Carry {
                rest = Some(mention_named(CARRIED, HoleUse::Both, None));
            }
            let body = ObjectPattern::new(Vec::new(), rest.clone());
            self.body = Some(Pattern::Object(body));
        }
        self.params = Pattern::Object(ObjectPattern::new(members, rest));
    }

    /// Binds the unknown members of the body to those of params.
    fn carry(&mut self) -> Result<(), PatternError> {
        let carried = mention_named(CARRIED, HoleUse::Both, None);
        match (&mut self.params, &mut self.body) {
            (Pattern::Object(params), Some(Pattern::Object(body)))
                if params.rest.is_none() && body.rest.is_none() =>
            {
                params.rest = Some(carried.clone());
                body.rest = Some(carried);
                Ok(())
            }
            _ => Err(PatternError::new(
                "members are carried only from a `body` table to a `params` table, and neither may name `...`; write `\"...\" = \"{others}\"` where they go",
            )
            .under("extra")),
        }
    }

    /// Checks the fields of a body that is a form.
    fn check_form(&mut self) -> Result<(), PatternError> {
        if self.body_format.is_form() {
            self.body = Some(form::check(self.body.take(), self.body_format)?);
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), PatternError> {
        let mut keys: Vec<&str> = Vec::new();
        for item in &self.rest.query {
            if item.key.is_empty() || keys.contains(&item.key.as_str()) {
                let what = format!("the query key `{}` is empty or given twice", item.key);
                return Err(PatternError::new(what).under("rest"));
            }
            keys.push(&item.key);
        }
        if let Some(hole) = self
            .method
            .mentions()
            .iter()
            .find(|mention| mention.name == "_")
        {
            let what = format!(
                "the hole `{}` of the method has no value to write",
                hole.name
            );
            return Err(PatternError::new(what).under("rpc"));
        }
        Ok(())
    }

    fn facts(&self) -> Result<HoleFacts, PatternError> {
        let mut resolver = HoleResolver::default();
        let at = |key: &'static str| move |error: PatternError| error.under(key);
        for hole in &self.rest.path.holes {
            resolver
                .at("rest")
                .mention(Side::Rest, &hole.slot, self.rest.path.position(hole), 0)
                .map_err(at("rest"))?;
        }
        for item in &self.rest.query {
            resolver
                .at("rest")
                .words(Side::Rest, &item.words, HolePosition::Words)
                .map_err(at("rest"))?;
        }
        if let Some(mention) = &self.other_query {
            resolver
                .at("query")
                .mention(Side::Rest, mention, HolePosition::Rest, 0)
                .map_err(at("query"))?;
        }
        for prefix in &self.header_prefixes {
            resolver
                .at("headers")
                .mention(Side::Rest, &prefix.slot, HolePosition::Rest, 0)
                .map_err(at("headers"))?;
        }
        for item in &self.headers {
            resolver
                .at("headers")
                .words(Side::Rest, &item.words, HolePosition::Words)
                .map_err(at("headers"))?;
        }
        if let Some(body) = &self.body {
            let key = self.rest_protocol.content();
            resolver.begin_body();
            resolver.at(key);
            let declared = if self.body_format.is_form() {
                form::declare(&mut resolver, body)
            } else {
                resolver.pattern(Side::Rest, body)
            };
            declared.map_err(at(key))?;
            resolver.end_body();
        }
        rpc_side::declare(&mut resolver, &self.method, &self.params, &self.rpc_headers)?;
        if self.rest_protocol.is_old() {
            resolver.carried(old::ID);
        }
        resolver.finish(&HoleFacts::default())
    }

    fn finish(
        self,
        source: RouteSource,
        facts: HoleFacts,
        form: RouteForm,
        extra: Extra,
    ) -> Result<Route, Vec<PatternError>> {
        let one = |error: PatternError| vec![error];
        let method = self.rest.method.clone();
        let effect = source.effect.unwrap_or(Effect::from_method(&method));
        let affinity = self.affinity(&source, &facts).map_err(one)?;
        let subscription = source.subscription_rule().map_err(one)?;
        Ok(Route {
            name: source.name,
            rest: source.rest,
            rpc: source.rpc,
            rest_protocol: self.rest_protocol,
            pass: source.old.map(|old| old.pass).unwrap_or_default(),
            method,
            rest_call: self.rest_call(&facts, form).map_err(one)?,
            rpc_call: self.rpc_call(&facts).map_err(one)?,
            id: self.id(&facts),
            silence: source.silence,
            facts,
            extra,
            unknown_query: UnknownQuery::new(source.ignore_query, source.extra),
            form,
            after: source.after,
            from: source.from,
            is_paired: source.is_paired,
            expects_reply: !source.is_notification,
            always_passes: source.always_passes,
            effect,
            timeout: source.timeout,
            stream: source.stream,
            stream_timeout: source.stream_timeout,
            subscription,
            affinity,
            successor: source.successor,
            outcomes: Outcomes::default(),
            lossy: source.lossy,
            examples: source.examples,
            schema: source.schema,
            docs: source.docs,
        })
    }

    /// Returns the hole that is the id of the call, which JSON-RPC carries outside its params.
    fn id(&self, facts: &HoleFacts) -> Option<usize> {
        let id_hole = facts
            .find(old::ID)
            .filter(|_| self.rest_protocol.is_old())?;
        let named = rpc_side::names(old::ID, &self.method, &self.params, &self.rpc_headers);
        (!named).then_some(id_hole)
    }

    /// Returns the hole that identifies a session. It must be in the head: a REST call that passes through is decided
    /// before its body has arrived.
    fn affinity(
        &self,
        source: &RouteSource,
        facts: &HoleFacts,
    ) -> Result<Option<usize>, PatternError> {
        let Some(name) = &source.affinity else {
            return Ok(None);
        };
        let fault = |what: String| Err(PatternError::new(what).under("affinity"));
        let Some(hole) = facts.find(name) else {
            return fault(format!(
                "`{name}` is not a hole that both sides of the route share"
            ));
        };
        let in_head = self.head_mentions().any(|mention| mention.name == *name);
        if !in_head && source.from != Some(Side::Rpc) {
            return fault(format!(
                "`{name}` is read only from the body, which arrives after the decision; name a hole of the path, the query or the headers, or write `from = \"rpc\"`"
            ));
        }
        Ok(Some(hole))
    }

    /// Returns the holes of the path, the query and the headers.
    fn head_mentions(&self) -> impl Iterator<Item = &HoleRef> {
        let path = self.rest.path.holes.iter().map(|hole| &hole.slot);
        let words = self.rest.query.iter().map(|item| &item.words);
        let headers = self.headers.iter().map(|item| &item.words);
        let prefixes = self.header_prefixes.iter().map(|prefix| &prefix.slot);
        let captured = self.other_query.iter().chain(prefixes);
        path.chain(words.chain(headers).flat_map(TextPatterns::mentions))
            .chain(captured)
    }

    fn rest_call(
        &self,
        facts: &HoleFacts,
        route_form: RouteForm,
    ) -> Result<RestCall, PatternError> {
        let at = |key: &'static str| move |error: PatternError| error.under(key);
        let holes = self.rest.path.holes.iter().map(|placed| {
            Ok(PlacedHole {
                slot: facts.slot(Side::Rest, &placed.slot, self.rest.path.position(placed), 0)?,
                start: placed.start,
                end: placed.end,
            })
        });
        let path = Template {
            segments: self.rest.path.segments.clone(),
            holes: holes
                .collect::<Result<_, PatternError>>()
                .map_err(at("rest"))?,
            verb: self.rest.path.verb.clone(),
        };
        check_words(&path).map_err(at("rest"))?;
        let mut query = Vec::with_capacity(self.rest.query.len());
        for item in &self.rest.query {
            let words = facts.words(Side::Rest, &item.words, HolePosition::Words);
            query.push(QueryItem {
                key: item.key.clone(),
                words: words.map_err(at("rest"))?,
            });
        }
        let captured = |mention| facts.slot(Side::Rest, mention, HolePosition::Rest, 0);
        let prefixes = self.header_prefixes.iter().map(|prefix| {
            Ok(HeaderPrefix {
                prefix: prefix.prefix.clone(),
                slot: captured(&prefix.slot)?,
            })
        });
        let prefixes = prefixes.collect::<Result<_, PatternError>>();
        let other_query = self.other_query.as_ref().map(captured).transpose();
        let body = self.body.as_ref();
        let is_form = self.body_format.is_form();
        let resolve = |body: &Pattern<HoleRef>| match is_form {
            true => form::resolve(facts, body),
            false => facts.resolve(Side::Rest, body),
        };
        let body = body.map(resolve).transpose();
        let body = body.map_err(at(self.rest_protocol.content()))?;
        let empty = match route_form {
            RouteForm::Short if !is_form => EmptyBody::Sent,
            RouteForm::Short | RouteForm::Full => EmptyBody::Omitted,
        };
        Ok(RestCall {
            path,
            query,
            other_query: other_query.map_err(at("query"))?,
            headers: resolve_headers(Side::Rest, &self.headers, facts)?,
            header_prefixes: prefixes.map_err(at("headers"))?,
            message_parameter: self.message_parameter.clone(),
            json_fields: body.as_ref().map(form::json_fields).unwrap_or_default(),
            body,
            format: self.body_format,
            empty,
            other_paths: self.other_paths.clone(),
            overlapping_names: Vec::new(),
            foreign_members: Vec::new(),
        })
    }

    fn rpc_call(&self, facts: &HoleFacts) -> Result<RpcCall, PatternError> {
        let method = facts.words(Side::Rpc, &self.method, HolePosition::Path);
        let params = facts.resolve(Side::Rpc, &self.params);
        let params = params.map_err(|error| error.under("params"))?;
        if !is_structured(&params) {
            let what =
                "params are an object or an array (JSON-RPC 2.0 §4.2); write `{ … }` or `[ … ]`";
            return Err(PatternError::new(what).under("params"));
        }
        Ok(RpcCall {
            method: method.map_err(|error| error.under("rpc"))?,
            params,
            headers: resolve_headers(Side::Rpc, &self.rpc_headers, facts)
                .map_err(of_rpc_headers)?,
        })
    }
}
