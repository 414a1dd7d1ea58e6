//! Validation of stages and flags, both for the file and for changes at run time. Used by `config::compile::rollout`.

use super::{Clients, Flag, OTHER, Percent, Stage, WithoutKey};
use dualgauge_patterns::side::Side;

/// A stage that cannot run because an upstream is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` sends calls of the `{calls}` side to an upstream of the `{needs}` side, but none is configured",
    stage.as_str()
)]
pub struct StageFault {
    /// The stage.
    pub stage: Stage,
    /// The side of the calls.
    pub calls: Side,
    /// The side whose upstream is missing.
    pub needs: Side,
}

impl Stage {
    /// Returns the reason why calls of a side cannot have this stage if only the sides in `upstreams` have one.
    #[must_use]
    pub fn fault(self, calls: Side, upstreams: &[Side]) -> Option<StageFault> {
        let needs = self.needs(calls).find(|side| !upstreams.contains(side))?;
        Some(StageFault {
            stage: self,
            calls,
            needs,
        })
    }
}

/// The facts about a route that a flag needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteEntry<'r> {
    /// The name.
    pub name: &'r str,
    /// The only side from which the route accepts calls, if there is one.
    pub from: Option<Side>,
}

impl RouteEntry<'_> {
    /// Returns true if the route accepts calls from a side.
    #[must_use]
    pub fn enters_from(&self, side: Side) -> bool {
        self.from.is_none_or(|only| only == side)
    }
}

/// A fault of a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagFault {
    /// The flag matches no client.
    #[error("`{0}` matches no client")]
    NoClient(String),
    /// The flag matches no route.
    #[error("`{0}` matches no route")]
    NoRoute(String),
    /// The routes of the flag accept no calls from its side.
    #[error(
        "the flag matches no route that accepts calls of the `{0}` side: each is entered from the other side only"
    )]
    NotEntered(Side),
    /// The flag assigns a stage that cannot run.
    #[error(transparent)]
    Stage(#[from] StageFault),
    /// The flag has a percentage, but its callers have no keys.
    #[error("{percent} % of the callers cannot be selected: there is no key for {clients}")]
    NoKey {
        /// The share.
        percent: Percent,
        /// The clients that it covers.
        clients: String,
    },
}

impl FlagFault {
    /// Returns the configuration key at fault.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            FlagFault::NoClient(_) => "client",
            FlagFault::NoRoute(_) => "route",
            FlagFault::NotEntered(_) => "side",
            FlagFault::Stage(_) => "stage",
            FlagFault::NoKey { .. } => "percent",
        }
    }
}

impl Flag {
    /// Returns all faults of the flag, given the clients, the routes and the sides that have an upstream.
    ///
    /// A percentage needs a key. If only some of the covered clients have one, as with `*`, `without_key` decides for
    /// the others, and that is no fault. If none has one, no caller ever has a bucket, and the flag matches all
    /// callers or none regardless of its percentage: that is a fault, even with `without_key = "in"`. Zero percent
    /// with no callers needs no key.
    #[must_use]
    pub fn faults(
        &self,
        clients: &Clients,
        routes: &[RouteEntry<'_>],
        upstreams: &[Side],
    ) -> Vec<FlagFault> {
        let mut faults = Vec::new();
        let covered = self.covered(clients);
        if covered.is_empty() {
            faults.push(FlagFault::NoClient(self.client.as_str().to_owned()));
        }
        faults.extend(self.idle(routes, upstreams));
        faults.extend(self.missing_key(&covered));
        faults
    }

    /// Returns the faults that keep the flag from any effect, or from one on the calls of a side.
    fn idle(&self, routes: &[RouteEntry<'_>], upstreams: &[Side]) -> Vec<FlagFault> {
        let fitting = routes.iter().filter(|route| self.route.fits(route.name));
        let fitting: Vec<_> = fitting.collect();
        if fitting.is_empty() {
            return vec![FlagFault::NoRoute(self.route.as_str().to_owned())];
        }
        let entered = |side: &Side| fitting.iter().any(|route| route.enters_from(*side));
        match self.side {
            Some(side) if !entered(&side) => vec![FlagFault::NotEntered(side)],
            own => {
                let sides = Side::ALL.into_iter().filter(entered);
                let sides = sides.filter(|side| own.is_none_or(|own| own == *side));
                let faults = sides.filter_map(|side| self.stage.fault(side, upstreams));
                faults.map(FlagFault::Stage).collect()
            }
        }
    }

    /// Returns the clients that the flag covers, each with true if its callers have keys.
    fn covered<'c>(&self, clients: &'c Clients) -> Vec<(&'c str, bool)> {
        let clients = clients.all().iter();
        let named = clients.map(|client| (client.name.as_str(), client.key.is_some()));
        named
            .chain([(OTHER, false)])
            .filter(|(name, _)| self.client.fits(name))
            .collect()
    }

    fn missing_key(&self, covered: &[(&str, bool)]) -> Option<FlagFault> {
        let is_off = self.percent.thousandths() == 0 && self.without_key == WithoutKey::Out;
        let any_keyed = covered.iter().any(|(_, has_key)| *has_key);
        if self.share() == Percent::ALL || is_off || any_keyed || covered.is_empty() {
            return None;
        }
        let names: Vec<String> = covered
            .iter()
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        Some(FlagFault::NoKey {
            percent: self.share(),
            clients: names.join(", "),
        })
    }
}
