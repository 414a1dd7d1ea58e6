//! The table of all routes, with the lookup of the route of a call. Used by `config`, `model` and `gateway`.

mod old;

pub use old::has_version;

use std::cmp::Reverse;

use http::{HeaderMap, Method};

use super::arrange::Arrangement;
use super::definition::Route;
use super::index::RouteIndex;
use super::near::{self, NearRoutes};
use super::old::{BodyContent, OldRoutes};
use super::order::DeclaredOrder;
use super::overlaps::{OverlapGroup, TableError, duplicate_names, has_literals, names};
use super::path::PathMatch;
use super::query::Query;
use super::segments::Segments;
use super::template::QueryItem;
use super::url::fits_path;
use super::wire::Wire;
use crate::form::BodyFormat;
use crate::translate::{
    MethodCall, RestHead, ToRest, TranslateContext, encode_body, read_body, read_rest, read_rpc,
    write_rest_call,
};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{BoundValue, MatchError};
use dualgauge_patterns::side::Side;

/// All routes, compiled.
#[derive(Debug, Default)]
pub struct RouteTable {
    routes: Vec<Route>,
    http: RouteIndex,
    frames: RouteIndex,
    /// Records, for each route, whether its written URL may match another route.
    contested: Vec<bool>,
    order: DeclaredOrder,
    old: OldRoutes,
}

/// The result of looking up a REST call.
#[derive(Debug)]
pub enum RestSelection<'t> {
    /// The route of the call, or the nearest one, which reports the mismatch.
    Route(usize),
    /// The body decides among these routes, the most specific first.
    ByBody(&'t OverlapGroup),
    /// Routes have this path, but with these methods only.
    OtherMethods(Vec<Method>),
    /// Routes have this path and method, but each requires a literal that the call does not have.
    OtherLiterals,
    /// No route has this path.
    Unrouted,
    /// No route matches this path and method, but another program may take it for the path of one.
    Near(NearRoutes),
}

/// The context for selecting a route. Selection writes nothing, so it needs no time.
const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

impl RouteTable {
    /// Compiles the table.
    ///
    /// # Errors
    /// Returns every pair of routes that cannot be distinguished, and every duplicate name.
    pub fn build(mut routes: Vec<Route>) -> Result<RouteTable, Vec<TableError>> {
        let mut errors = duplicate_names(&routes);
        let order = DeclaredOrder::new(&routes, &mut errors);
        let by_path = |route: &usize| {
            let route = &routes[*route];
            !route.is_frame() && route.enters_from(Side::Rest)
        };
        let by_path: Vec<usize> = (0..routes.len()).filter(by_path).collect();
        let mut arrangement = Arrangement {
            routes: &mut routes,
            order: &order,
            errors: &mut errors,
        };
        arrangement.check_paths(&by_path);
        let [http, frames] = [false, true].map(|has_frames| {
            let mut index = RouteIndex::new(arrangement.routes, has_frames);
            let speaks = |route: usize| arrangement.routes[route].is_frame() == has_frames;
            for (front, back) in order
                .pairs()
                .filter(|(one, two)| speaks(*one) && speaks(*two))
            {
                index.relate(arrangement.routes, front, back);
            }
            index.arrange(&mut arrangement);
            index
        });
        if errors.is_empty() {
            let contested = routes.iter().enumerate();
            let contested = contested.map(|(index, route)| {
                let route_index = if route.is_frame() { &frames } else { &http };
                route_index.contests(route, index)
            });
            Ok(RouteTable {
                contested: contested.collect(),
                old: OldRoutes::new(&routes),
                routes,
                http,
                frames,
                order,
            })
        } else {
            Err(errors)
        }
    }

    /// Returns all routes, in the order of declaration.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Returns the route at an index from a selection.
    #[must_use]
    pub fn route(&self, index: usize) -> &Route {
        &self.routes[index]
    }

    /// Finds the route of a REST call.
    #[must_use]
    pub fn select_rest<'t>(
        &'t self,
        method: &Method,
        segments: &Segments<'_>,
        query: Option<&str>,
        headers: &HeaderMap,
    ) -> RestSelection<'t> {
        match self.http.find(segments, method) {
            PathMatch::Routes(group) if let Some(only) = group.only() => RestSelection::Route(only),
            PathMatch::Routes(group) if group.needs_body() => RestSelection::ByBody(group),
            PathMatch::Routes(group) => {
                let head = RestHead {
                    segments,
                    query,
                    headers,
                };
                let found = if group.has_one_path() {
                    self.among_rest(group.routes(), head)
                } else {
                    self.among_rest(&self.admitted(group, segments), head)
                };
                found.map_or(RestSelection::OtherLiterals, RestSelection::Route)
            }
            PathMatch::OtherMethods(methods) => self.select_near(segments, method, methods),
            PathMatch::Nothing => self.select_near(segments, method, Vec::new()),
        }
    }

    /// Returns the result for a path that no route has with this method.
    #[inline(never)]
    fn select_near<'t>(
        &'t self,
        segments: &Segments<'_>,
        method: &Method,
        methods: Vec<Method>,
    ) -> RestSelection<'t> {
        let search = near::NearSearch {
            plain: &self.http.tree,
            slashed: &self.http.slashed,
            method,
        };
        let routes = search.of(segments);
        match (routes.is_empty(), methods.is_empty()) {
            (false, _) => RestSelection::Near(NearRoutes { routes, methods }),
            (true, false) => RestSelection::OtherMethods(methods),
            (true, true) => RestSelection::Unrouted,
        }
    }

    /// Returns the methods of the routes at a path.
    #[must_use]
    pub fn methods(&self, segments: &Segments<'_>) -> Vec<Method> {
        // No route has CONNECT, so the result lists all methods.
        match self.http.find(segments, &Method::CONNECT) {
            PathMatch::OtherMethods(methods) => methods,
            PathMatch::Routes(_) | PathMatch::Nothing => Vec::new(),
        }
    }

    /// Returns the content of the bodies that decide between the routes of a group; all have the same.
    #[must_use]
    pub fn body_content(&self, group: &OverlapGroup) -> BodyContent {
        let first = group.routes().first();
        first.map_or(BodyContent::Typed(BodyFormat::Json), |route| {
            self.route(*route).body_content()
        })
    }

    /// Finds the route of a REST call by its body. Returns `None` if no route's literals match.
    #[must_use]
    pub fn select_by_body(
        &self,
        group: &OverlapGroup,
        head: RestHead<'_>,
        body: Option<&Json>,
    ) -> Option<usize> {
        let possible = |route: &&usize| {
            let pattern = self.route(**route).rest_call.body.as_ref();
            pattern.is_none_or(|pattern| has_literals(pattern, body))
        };
        let path = |route: usize| &self.route(route).rest_call.path;
        let may_take = |route: &&usize| group.may_take(**route, path(**route), head.segments);
        let routes = group.routes().iter().filter(may_take).filter(possible);
        let routes: Vec<usize> = routes.copied().collect();
        let dropped = |route: &usize| {
            let route = self.route(*route);
            let mut reading = read_rest(route, head, TERMS).ok()?;
            read_body(route, body, &mut reading).ok()?;
            Some(reading.dropped)
        };
        let found = self.first_complete(&routes, dropped);
        found.or_else(|| self.among_rest(&routes, head))
    }

    /// Returns the routes that `after` puts before a route, directly or not.
    #[must_use]
    pub fn fronts(&self, index: usize) -> &[usize] {
        self.order.fronts(index)
    }

    /// Returns the first matching route that ignores nothing, or else the first matching one. A matching route that is
    /// declared to come before another one is taken in its place.
    fn first_complete(
        &self,
        routes: &[usize],
        dropped: impl Fn(&usize) -> Option<usize>,
    ) -> Option<usize> {
        let mut fitting = Vec::new();
        for route in routes {
            match dropped(route) {
                Some(0) => {
                    let is_front = |front: &&usize| self.order.is_before(**front, *route);
                    return Some(*fitting.iter().find(is_front).unwrap_or(route));
                }
                Some(_) => fitting.push(*route),
                None => {}
            }
        }
        fitting.first().copied()
    }

    /// Returns the routes of a group that may take a call with this path.
    fn admitted(&self, group: &OverlapGroup, segments: &Segments<'_>) -> Vec<usize> {
        let routes = group.routes().iter().copied();
        let path = |route: usize| &self.route(route).rest_call.path;
        let may_take = |route: &usize| group.may_take(*route, path(*route), segments);
        routes.filter(may_take).collect()
    }

    /// Finds the route of an RPC call. If none matches, returns the nearest one whose literals the call has.
    #[must_use]
    pub fn select_rpc(&self, method: &str, params: Option<&Json>) -> Option<usize> {
        self.select_rpc_to(Wire::Http, MethodCall::new(method, params))
    }

    /// Does the same, for an upstream with this protocol.
    #[must_use]
    pub fn select_rpc_to(&self, rest_protocol: Wire, call: MethodCall<'_>) -> Option<usize> {
        let index = self.index(rest_protocol);
        match index.by_rpc.get(call.method) {
            Some(group) => self.first_rpc(group.discriminated_by(call.params), call),
            None => {
                let named = |route: &&usize| self.route(**route).has_rpc_method(call.method);
                let named: Vec<usize> = index
                    .by_rpc_pattern
                    .routes()
                    .iter()
                    .filter(named)
                    .copied()
                    .collect();
                self.first_rpc(&named, call)
            }
        }
    }

    /// Returns true when a route has this RPC method, regardless of params.
    #[must_use]
    pub fn knows_rpc(&self, method: &str) -> bool {
        let mut patterns = self.http.by_rpc_pattern.routes().iter();
        self.http.by_rpc.get(method).is_some()
            || patterns.any(|route| self.route(*route).has_rpc_method(method))
    }

    /// Writes the REST call of an RPC call that matches a route.
    ///
    /// # Errors
    /// Returns [`MatchError`] with the member that does not fit, such as one that would turn the call into that of
    /// another route: `GET /items/{id}` never becomes `GET /items/search`.
    pub fn write_rest(
        &self,
        index: usize,
        call: MethodCall<'_>,
        context: TranslateContext,
    ) -> Result<ToRest, MatchError> {
        // An HTTP exchange has one call, so every id identifies it.
        let id = self.route(index).id_for(1);
        let written = self.write_rest_of(index, call, id, context)?;
        encode_body(self.route(index), written)
    }

    /// Does the same for a call whose frame gets this id. A form stays JSON.
    ///
    /// # Errors
    /// Fails as [`RouteTable::write_rest`] does.
    pub fn write_rest_of(
        &self,
        index: usize,
        call: MethodCall<'_>,
        id: BoundValue,
        context: TranslateContext,
    ) -> Result<ToRest, MatchError> {
        let route = self.route(index);
        let mut reading = read_rpc(route, call, context)?;
        if let Some(hole) = route.id {
            reading.bindings.set(hole, id);
        }
        let written = write_rest_call(route, reading, call.params, context)?;
        if !self.contested[index] {
            return Ok(written);
        }
        if let Some(taken) = self.ambiguous_url(route, &written).filter(|taken| *taken != index)
            // An alias that only the other side calls has the same path as its counterpart.
            && !self.is_alias(index, taken)
        {
            return Err(MatchError::new(
                "params",
                format!("these values select the route `{}`", self.route(taken).name),
            ));
        }
        Ok(written)
    }

    /// Returns the route that a REST client would reach by the written call.
    fn ambiguous_url(&self, route: &Route, written: &ToRest) -> Option<usize> {
        if route.is_frame() {
            let frame = written.body.clone().map(Json::sent)?;
            return self.select_frame(&frame);
        }
        let (path, query) = match written.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (written.target.as_str(), None),
        };
        let segments = Segments::split(path);
        let headers = HeaderMap::from_iter(written.headers.iter().cloned());
        match self.select_rest(&route.method, &segments, query, &headers) {
            RestSelection::Route(taken) => Some(taken),
            RestSelection::ByBody(group) => {
                let body = written.body.clone().map(Json::sent);
                let head = RestHead {
                    segments: &segments,
                    query,
                    headers: &headers,
                };
                self.select_by_body(group, head, body.as_ref())
            }
            RestSelection::OtherMethods(_)
            | RestSelection::OtherLiterals
            | RestSelection::Unrouted
            | RestSelection::Near(_) => None,
        }
    }

    fn index(&self, rest_protocol: Wire) -> &RouteIndex {
        match rest_protocol {
            Wire::Http | Wire::Old => &self.http,
            Wire::Frame => &self.frames,
        }
    }

    /// Returns the routes among which the path and method of a REST call choose.
    #[cfg(test)]
    pub(super) fn candidates(&self, method: &Method, segments: &Segments<'_>) -> &[usize] {
        match self.http.find(segments, method) {
            PathMatch::Routes(group) => group.routes(),
            PathMatch::OtherMethods(_) | PathMatch::Nothing => &[],
        }
    }

    /// Returns true when a route is an alias of another one that REST clients call at the same path.
    fn is_alias(&self, index: usize, twin: usize) -> bool {
        let (route, twin) = (self.route(index), self.route(twin));
        !route.enters_from(Side::Rest)
            && route.rest_call.path.segments == twin.rest_call.path.segments
            && route.rest_call.path.verb == twin.rest_call.path.verb
    }

    /// Selects among routes of one path and method whose literals the query has: the most specific that matches, or
    /// else the nearest, which is one whose path fits, with the most names of the query, and the fewest that are missing.
    fn among_rest(&self, routes: &[usize], head: RestHead<'_>) -> Option<usize> {
        if let [route] = routes
            && !self.route(*route).rest_call.has_literal()
        {
            return Some(*route);
        }
        let Ok(query) = Query::parse(head.query) else {
            return routes.first().copied();
        };
        let possible = |route: &&usize| query.has_literals(&self.route(**route).rest_call.query);
        let fits = |route: &&usize| read_rest(self.route(**route), head, TERMS).is_ok();
        let likeness = |route: &&usize| {
            let route = self.route(**route);
            let items = route.rest_call.query.iter();
            let (named, others): (Vec<_>, Vec<_>) = items.partition(|item| query.has(&item.key));
            let is_required = |item: &&&QueryItem| !item.words.may_be_absent();
            let missing = others.iter().filter(is_required).count();
            let fits = fits_path(route, head.segments, TERMS.depth);
            (fits, named.len(), Reverse(missing))
        };
        let possible = || routes.iter().filter(possible);
        // `max_by_key` returns the last of equals; the first one in the group is needed, hence `rev`.
        let nearest = || possible().rev().max_by_key(likeness);
        possible().find(fits).or_else(nearest).copied()
    }

    fn first_rpc(&self, routes: &[usize], call: MethodCall<'_>) -> Option<usize> {
        let possible =
            |route: &&usize| has_literals(&self.route(**route).rpc_call.params, call.params);
        if let [route] = routes {
            return possible(&route).then_some(*route);
        }
        let possible: Vec<usize> = routes.iter().filter(possible).copied().collect();
        if let [route] = possible[..] {
            return Some(route);
        }
        let dropped = |route: &usize| {
            let reading = read_rpc(self.route(*route), call, TERMS).ok()?;
            Some(reading.dropped)
        };
        let found = self.first_complete(&possible, dropped);
        found.or_else(|| self.nearest_rpc(&possible, call.params))
    }

    /// Returns the route that knows the most members of the call.
    fn nearest_rpc(&self, routes: &[usize], params: Option<&Json>) -> Option<usize> {
        let members = params
            .and_then(|params| params.open().ok())
            .unwrap_or_default();
        let named = |route: &&usize| {
            let names = names(&self.route(**route).rpc_call.params);
            let known = |name: &&str| members.iter().any(|member| member.name == **name);
            names.iter().filter(|name| known(name)).count()
        };
        routes.iter().rev().max_by_key(named).copied()
    }
}
