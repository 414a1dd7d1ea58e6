//! What keeps a stage or a flag from ever doing what it says; the same for a file and for a change at run time.

use super::{Clients, Flag, OTHER, Percent, Stage, WithoutKey};
use crate::domain::side::Side;

/// A stage that cannot run, because a server is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` sends calls of the `{calls}` side to an upstream of the `{needs}` side, and there is none",
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
    /// Why calls of a side cannot get this stage where only `upstreams` have a server.
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

/// What a flag needs to know of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteEntry<'r> {
    /// Its name.
    pub name: &'r str,
    /// The only side that it is entered from, if there is one.
    pub from: Option<Side>,
}

impl RouteEntry<'_> {
    /// Whether a call may enter the route from a side.
    #[must_use]
    pub fn enters_from(&self, side: Side) -> bool {
        self.from.is_none_or(|only| only == side)
    }
}

/// What is wrong with a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagFault {
    /// It speaks of nobody.
    #[error("`{0}` fits no client")]
    NoClient(String),
    /// It speaks of nothing.
    #[error("`{0}` fits no route")]
    NoRoute(String),
    /// It speaks of calls that never come.
    #[error(
        "no call of the `{0}` side is of a route that the flag fits: each is entered from the other side only"
    )]
    NotEntered(Side),
    /// It gives a stage that cannot run.
    #[error(transparent)]
    Stage(#[from] StageFault),
    /// It takes a share of callers who cannot be told apart.
    #[error(
        "{percent} % of the callers cannot be told from the others: there is no key for {clients}"
    )]
    NoKey {
        /// The share.
        percent: Percent,
        /// The clients that it covers.
        clients: String,
    },
}

impl FlagFault {
    /// The key of the flag that is at fault.
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
    /// Everything that is wrong with the flag among these clients, routes and sides with an upstream.
    ///
    /// A share needs a key. Where some of the clients that the flag covers have one and others have none, as with
    /// `*`, the flag says by `without_key` what becomes of the latter, and that is no fault. Where none has one, no
    /// caller ever has a bucket, and whatever the percentage says, the flag takes nobody or everybody: that is one,
    /// also with `without_key = "in"`. Zero per cent that takes nobody needs no key.
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

    /// What keeps the flag from acting on any call, or on those of a side that its routes are entered from.
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

    /// The clients that the flag speaks of, each with whether its callers can be told apart.
    fn covered<'c>(&self, clients: &'c Clients) -> Vec<(&'c str, Keyed)> {
        let named = clients.all().iter().map(|client| {
            let keyed = client.key.as_ref().map_or(Keyed::No, |_| Keyed::Yes);
            (client.name.as_str(), keyed)
        });
        named
            .chain([(OTHER, Keyed::No)])
            .filter(|(name, _)| self.client.fits(name))
            .collect()
    }

    fn missing_key(&self, covered: &[(&str, Keyed)]) -> Option<FlagFault> {
        let nobody = self.percent.thousandths() == 0 && self.without_key == WithoutKey::Out;
        let told_apart = covered.iter().any(|(_, keyed)| *keyed == Keyed::Yes);
        if self.share() == Percent::ALL || nobody || told_apart || covered.is_empty() {
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

/// Whether callers of a client can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keyed {
    Yes,
    No,
}
