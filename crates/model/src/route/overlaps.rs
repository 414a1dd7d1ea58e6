//! Groups of routes that path and method, or the RPC method, alone do not distinguish.
//!
//! [`super::arrange`] orders the routes of a group when the table is built. Each learns the names that only the others
//! have. If they differ by a literal in params, a map finds the route by that literal.
//!
//! Used by `route::arrange`, `route::order`, `route::path`, `route::table` and `routing`.

use std::collections::HashMap;

use super::definition::Route;
use super::name_map::NameMap;
use super::segments::Segments;
use super::specificity::literals;
use super::template::Template;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Pattern;
use dualgauge_patterns::side::Side;

/// The reason why routes cannot be in one table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct TableError {
    /// The index of the refused route in the list.
    pub route: usize,
    /// The faulty key.
    pub key: &'static str,
    /// The reason, with the name of the other route.
    pub what: String,
}

/// A group of overlapping routes, the most specific first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OverlapGroup {
    pub(super) routes: Vec<usize>,
    /// The routes with another path or method, which `after` relates to a route of the group.
    related: Vec<usize>,
    /// True if the body distinguishes the routes.
    pub(super) needs_body: bool,
    discriminator: Option<Discriminator>,
    /// The route for every call of its path and method: it is the only one and requires no literal.
    pub(super) only: Option<usize>,
}

/// The place of params at which most routes have a literal, with the routes of each literal.
#[derive(Debug, PartialEq, Eq)]
struct Discriminator {
    path: Vec<String>,
    by_text: NameMap<Vec<usize>>,
    others: Vec<usize>,
}

impl OverlapGroup {
    pub(super) fn add(&mut self, route: usize) {
        self.routes.push(route);
    }

    /// Adds a route with another path or method, once.
    pub(super) fn add_related(&mut self, route: usize) {
        if !self.routes.contains(&route) {
            self.routes.push(route);
            self.related.push(route);
        }
    }

    /// Returns true when all routes have the same path and method.
    pub(super) fn has_one_path(&self) -> bool {
        self.related.is_empty()
    }

    /// Returns true when a route of the group may take a call with this path.
    pub(super) fn may_take(&self, route: usize, path: &Template, segments: &Segments<'_>) -> bool {
        !self.related.contains(&route) || path.fits(segments)
    }

    /// Returns the routes, the most specific first.
    #[must_use]
    pub fn routes(&self) -> &[usize] {
        &self.routes
    }

    /// Returns the route for every call of its path and method, if there is one.
    pub(super) fn only(&self) -> Option<usize> {
        self.only
    }

    /// Returns true when the head of a call may not suffice to find its route.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.needs_body
    }

    /// Returns the routes that remain after the literal of params is known.
    pub(super) fn discriminated_by(&self, params: Option<&Json>) -> &[usize] {
        let Some(discriminator) = &self.discriminator else {
            return &self.routes;
        };
        let mut value = params.cloned();
        for name in &discriminator.path {
            value = value.and_then(|value| value.member(name));
        }
        let text = value.and_then(|value| value.text()?.ok());
        let found = text.and_then(|text| discriminator.by_text.get(&text));
        found.map_or(&discriminator.others, Vec::as_slice)
    }
}

pub(super) fn duplicate_names(routes: &[Route]) -> Vec<TableError> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut errors = Vec::new();
    for (index, route) in routes.iter().enumerate() {
        if seen.insert(&route.name, index).is_some() {
            let what = format!("two routes have the name `{}`", route.name);
            errors.push(TableError {
                route: index,
                key: "name",
                what,
            });
        }
    }
    errors
}

/// Returns the pairs that no literal in params distinguishes.
pub(super) fn pairs(group: &OverlapGroup) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut each = |among: &[usize], and: &[usize]| {
        for (index, one) in among.iter().enumerate() {
            found.extend(among[index + 1..].iter().map(|other| (*one, *other)));
            found.extend(and.iter().map(|other| (*one, *other)));
        }
    };
    match &group.discriminator {
        None => each(&group.routes, &[]),
        Some(found) => {
            let mut texts: Vec<&Vec<usize>> = found.by_text.values().collect();
            texts.sort();
            for among in texts {
                // The routes of a text are followed by those without a literal there.
                let with_text = among.len() - found.others.len();
                each(&among[..with_text], &found.others);
            }
            each(&found.others, &[]);
        }
    }
    found
}

/// Finds the member where most routes have a literal text.
pub(super) fn discriminate(group: &mut OverlapGroup, routes: &[Route]) {
    group.discriminator = discriminator(&group.routes, routes);
}

/// Puts the routes into an order.
pub(super) fn sort(group: &mut OverlapGroup, order: Vec<usize>) {
    group.routes = order;
    if let Some(found) = &mut group.discriminator {
        let place = |route: &usize| group.routes.iter().position(|known| known == route);
        for routes in found.by_text.values_mut().chain([&mut found.others]) {
            routes.sort_by_key(place);
        }
    }
}

/// Returns the member where most routes have a literal text.
fn discriminator(group: &[usize], routes: &[Route]) -> Option<Discriminator> {
    let mut places: HashMap<Vec<String>, HashMap<String, Vec<usize>>> = HashMap::new();
    for route in group {
        for (path, literal) in literals(&routes[*route].rpc_call.params) {
            if let Some(Ok(text)) = literal.text() {
                places
                    .entry(path)
                    .or_default()
                    .entry(text)
                    .or_default()
                    .push(*route);
            }
        }
    }
    let most = |(path, texts): &(Vec<String>, HashMap<String, Vec<usize>>)| {
        (texts.len(), std::cmp::Reverse(path.clone()))
    };
    let (path, by_text) = places.into_iter().max_by_key(most)?;
    let mut others = group.to_vec();
    others.retain(|route| by_text.values().all(|routes| !routes.contains(route)));
    let mut index = NameMap::<Vec<usize>>::default();
    for (text, routes) in by_text {
        // Routes without a literal there may match as well.
        index.under(&text).extend(routes.iter().chain(&others));
    }
    Some(Discriminator {
        path,
        by_text: index,
        others,
    })
}

/// Returns true when no literal distinguishes two routes.
pub(super) fn may_be_confused(one: &Route, other: &Route, side: Side) -> bool {
    use dualgauge_patterns::pattern::{TextPatterns, words_intersection};
    match side {
        Side::Rest => {
            let (one, other) = (&one.rest_call, &other.rest_call);
            let differ = |words: &TextPatterns, twin: &TextPatterns| {
                matches!(
                    (words, twin),
                    (TextPatterns::Literal(_), TextPatterns::Literal(_))
                ) && words_intersection(words, twin).is_none()
            };
            let query_differs = one.query.iter().any(|item| {
                let twin = other.query.iter().find(|twin| twin.key == item.key);
                twin.is_some_and(|twin| differ(&item.words, &twin.words))
            });
            let (one, other) = (one.body.as_ref(), other.body.as_ref());
            !query_differs
                && !one
                    .zip(other)
                    .is_some_and(|(one, other)| literals_differ(one, other))
        }
        Side::Rpc => !literals_differ(&one.rpc_call.params, &other.rpc_call.params),
    }
}

fn literals_differ(one: &Pattern, other: &Pattern) -> bool {
    let twins = literals(other);
    literals(one).iter().any(|(path, literal)| {
        let twin = twins.iter().find(|(place, _)| place == path);
        twin.is_some_and(|(_, twin)| !twin.same(literal))
    })
}

/// Returns the member names of a pattern of params.
pub(super) fn names(pattern: &Pattern) -> Vec<&str> {
    match pattern {
        Pattern::Object(object) => object.members.iter().map(|(name, _)| &**name).collect(),
        Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => Vec::new(),
    }
}

/// Gives each of two rivals the names that only the other one has.
pub(super) fn make_rivals(rivals: &[(usize, usize)], routes: &mut [Route], side: Side) {
    for (one, other) in rivals
        .iter()
        .flat_map(|(one, other)| [(*one, *other), (*other, *one)])
    {
        let twin = routes[other].clone();
        let route = &mut routes[one];
        match side {
            Side::Rest => {
                let keys_here: Vec<&str> = route
                    .rest_call
                    .query
                    .iter()
                    .map(|item| &*item.key)
                    .collect();
                let keys = twin.rest_call.query.iter().map(|item| &item.key);
                let new: Vec<String> = keys
                    .filter(|key| !keys_here.contains(&key.as_str()))
                    .cloned()
                    .collect();
                // A route that captures all names ignores none of them.
                if route.rest_call.other_query.is_none() {
                    learn(&mut route.rest_call.overlapping_names, new);
                }
                match (&mut route.rest_call.body, &twin.rest_call.body) {
                    (Some(body), Some(twin)) => mark(body, twin),
                    (None, Some(twin)) => {
                        let new = names(twin).into_iter().map(str::to_owned).collect();
                        learn(&mut route.rest_call.foreign_members, new);
                    }
                    (_, None) => {}
                }
            }
            Side::Rpc => mark(&mut route.rpc_call.params, &twin.rpc_call.params),
        }
    }
}

fn learn(names: &mut Vec<String>, new: Vec<String>) {
    names.extend(new);
    names.sort();
    names.dedup();
}

/// Records at each object the names that the other pattern has at the same place.
fn mark(pattern: &mut Pattern, twin: &Pattern) {
    match (pattern, twin) {
        (Pattern::Object(object), Pattern::Object(twin)) => {
            let knows = |name: &String| object.members.iter().any(|(own, _)| own == name);
            let new = twin.members.iter().map(|(name, _)| name);
            let new: Vec<String> = new.filter(|name| !knows(name)).cloned().collect();
            // An object that accepts all members ignores none of them.
            if object.rest.is_none() {
                learn(&mut object.overlapping_names, new);
            }
            for (name, member) in &mut object.members {
                if let Some((_, twin)) = twin.members.iter().find(|(known, _)| known == name) {
                    mark(member, twin);
                }
            }
        }
        (Pattern::List(list), Pattern::List(twin)) => {
            for (item, twin) in list.items.iter_mut().zip(&twin.items) {
                mark(item, twin);
            }
        }
        (Pattern::Each(each), Pattern::Each(twin)) => mark(&mut each.item, &twin.item),
        (Pattern::Either(either), twin) => either.change(|pattern| mark(pattern, twin)),
        (pattern, Pattern::Either(either)) => {
            for twin in &either.alternatives {
                mark(pattern, twin);
            }
        }
        (Pattern::Each(each), Pattern::List(twin)) => {
            for twin in &twin.items {
                mark(&mut each.item, twin);
            }
        }
        (Pattern::List(list), Pattern::Each(twin)) => {
            for item in &mut list.items {
                mark(item, &twin.item);
            }
        }
        (
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::Object(_)
            | Pattern::List(_)
            | Pattern::Each(_),
            _,
        ) => {}
    }
}

/// Returns true when a value has the literals of a pattern in their places; of alternatives, those of one.
pub(super) fn has_literals(pattern: &Pattern, value: Option<&Json>) -> bool {
    match pattern {
        Pattern::Literal(literal) => value.is_some_and(|value| literal.same(value)),
        Pattern::Object(object) => object.members.iter().all(|(name, member)| {
            !holds_literal(member)
                || has_literals(member, value.and_then(|value| value.member(name)).as_ref())
        }),
        Pattern::Either(either) => {
            let mut forms = either.alternatives.iter();
            forms.any(|form| has_literals(form, value))
        }
        Pattern::Hole(_) | Pattern::Text(_) | Pattern::List(_) | Pattern::Each(_) => true,
    }
}

/// Returns true when every value of a pattern has literals outside of lists.
pub(super) fn holds_literal(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::Literal(_) => true,
        Pattern::Object(object) => object
            .members
            .iter()
            .any(|(_, member)| holds_literal(member)),
        Pattern::Either(either) => either.alternatives.iter().all(holds_literal),
        Pattern::Hole(_) | Pattern::Text(_) | Pattern::List(_) | Pattern::Each(_) => false,
    }
}
