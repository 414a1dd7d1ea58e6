//! The lookup of routes for one protocol: trees of paths, and maps of RPC methods. Used by `route::table`.

use http::Method;

use super::arrange::Arrangement;
use super::definition::Route;
use super::name_map::NameMap;
use super::overlaps::OverlapGroup;
use super::path::{PathMatch, PathTree};
use super::path_order::{PathOrder, path_order};
use super::segments::{AmbiguousPath, Segments};
use dualgauge_patterns::pattern::TextPatterns;
use dualgauge_patterns::side::Side;

/// The lookup of routes for one protocol.
#[derive(Debug, Default)]
pub(super) struct RouteIndex {
    pub(super) tree: PathTree,
    /// The routes whose paths end in a slash, by the path before it.
    pub(super) slashed: PathTree,
    pub(super) by_rpc: NameMap<OverlapGroup>,
    /// The routes whose RPC method has holes; they are tried after the literal ones.
    pub(super) by_rpc_pattern: OverlapGroup,
}

impl RouteIndex {
    pub(super) fn new(routes: &[Route], has_frames: bool) -> RouteIndex {
        let mut index = RouteIndex::default();
        let all = routes.iter().enumerate();
        for (position, route) in all.filter(|(_, route)| route.is_frame() == has_frames) {
            if route.enters_from(Side::Rest) {
                index.tree_of(route).insert(route, position);
                for path in &route.rest_call.other_paths {
                    let mut there = route.clone();
                    there.rest_call.path.clone_from(path);
                    index.tree_of(&there).insert(&there, position);
                }
            }
            if route.enters_from(Side::Rpc) {
                match &route.rpc_call.method {
                    TextPatterns::Literal(method) => index.by_rpc.under(method).add(position),
                    TextPatterns::Hole(_) | TextPatterns::Mixed(_) => {
                        index.by_rpc_pattern.add(position)
                    }
                }
            }
        }
        index
    }

    /// Returns the tree for the path of a route.
    fn tree_of(&mut self, route: &Route) -> &mut PathTree {
        match route.rest_call.path.before_slash() {
            (_, true) => &mut self.slashed,
            (_, false) => &mut self.tree,
        }
    }

    /// Returns the routes of exactly this path.
    pub(super) fn find<'t>(&'t self, segments: &Segments<'_>, method: &Method) -> PathMatch<'t> {
        let path = segments.path();
        match segments.ambiguity() {
            None => self.tree.find(path, method),
            Some(AmbiguousPath::TrailingSlash) => {
                let before = path.and_then(|path| path.strip_suffix('/'));
                self.slashed.find(before, method)
            }
            Some(AmbiguousPath::EmptySegment | AmbiguousPath::DotSegment) => PathMatch::Nothing,
        }
    }

    /// Returns true when a path that a route writes may be the path of another one.
    pub(super) fn contests(&self, route: &Route, position: usize) -> bool {
        let tree = match route.rest_call.path.before_slash() {
            (_, true) => &self.slashed,
            (_, false) => &self.tree,
        };
        tree.contests(route, position)
    }

    /// Adds each of two routes to the group of the other, if calls may fit both. `after` relates them.
    pub(super) fn relate(&mut self, routes: &[Route], front: usize, back: usize) {
        let both = [&routes[front], &routes[back]];
        let enter = |side: Side| both.iter().all(|route| route.enters_from(side));
        let [first, second] = both;
        let order = path_order(&first.rest_call.path, &second.rest_call.path);
        if enter(Side::Rest)
            && first.method == second.method
            && !matches!(order, PathOrder::Apart | PathOrder::Same)
        {
            self.tree_of(first).add_related(first, back);
            self.tree_of(second).add_related(second, front);
        }
        if let TextPatterns::Literal(method) = &first.rpc_call.method
            && enter(Side::Rpc)
            && second.has_rpc_method(method)
        {
            self.by_rpc.under(method).add_related(back);
        }
    }

    pub(super) fn arrange(&mut self, arrangement: &mut Arrangement<'_>) {
        for tree in [&mut self.tree, &mut self.slashed] {
            for group in tree.groups_mut() {
                arrangement.arrange(group, Side::Rest);
            }
        }
        let patterns = [&mut self.by_rpc_pattern];
        for group in self.by_rpc.values_mut().chain(patterns) {
            arrangement.arrange(group, Side::Rpc);
        }
    }
}
