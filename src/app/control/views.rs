//! The state as shown by the admin API.

use std::collections::{BTreeMap, BTreeSet};

use super::overrides::percent;
use super::state::Control;
use crate::config::raw::RawFlag;
use crate::server::admin::{
    ClientView, DefaultsView, FileView, FlagView, FlagsView, PlanView, RampView, Refusal,
    ReloadView, Reloaded, RouteView, UpstreamView,
};
use dualgauge_model::document::{ApiInfo, openapi, openrpc, rendered};
use dualgauge_model::rollout::overrides::{FlagOverrides, HistoryEntry};
use dualgauge_model::rollout::{Kill, Percent};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

impl Control {
    /// Returns the result of a reload for the API.
    pub(super) fn reloaded(&self, reloaded: Reloaded) -> Result<ReloadView, Refusal> {
        let result = match (reloaded, &self.refused) {
            (Reloaded::Swapped, _) => "swapped",
            (Reloaded::Refused, Some(problems)) => return Err(Refusal::Config(problems.clone())),
            (Reloaded::Unchanged, _) | (Reloaded::Refused, None) => "unchanged",
        };
        Ok(ReloadView {
            result,
            reloads: self.reloads.succeeded,
            routes: self.config.routes.len(),
            flags: self.flags.len(),
            revision: self.revision,
        })
    }

    /// Returns all flags, in order.
    #[must_use]
    pub fn flags(&self) -> FlagsView {
        let flags = self.flags.iter().zip(&self.file_flags);
        FlagsView {
            revision: self.revision,
            kill: self.kill_over(self.overrides.kill.as_ref()),
            kill_unstored: self.kill_unstored().map(str::to_owned),
            still_translated: self.still_translated(),
            called_off: self.overrides.called_off.iter().cloned().collect(),
            without_brownouts: self.without_brownouts(),
            flags: flags.map(|(flag, file)| self.view(flag, file)).collect(),
        }
    }

    /// Returns the routes and sides that the kill switch leaves translated, if it is on.
    fn still_translated(&self) -> Vec<String> {
        if self.plan.rollout.kill == Kill::Off {
            return Vec::new();
        }
        let routes = self.plan.routes.routes().iter().enumerate();
        let each = routes.flat_map(|(index, route)| Side::ALL.map(|side| (index, route, side)));
        let left = each.filter(|(index, route, side)| {
            let entered = route.from.is_none_or(|from| from == *side);
            entered && self.plan.upstream_for(Some(*index), *side).is_none()
        });
        let left = left.map(|(_, route, side)| format!("{} ({side})", route.name));
        let streams = self.plan.streams.all().iter().enumerate();
        let each = streams.flat_map(|(index, stream)| Side::ALL.map(|side| (index, stream, side)));
        let streams = each
            .filter(|(index, _, side)| self.plan.upstream_of_stream(*index, *side).is_none())
            .map(|(_, stream, side)| format!("{} ({side})", stream.name));
        left.chain(streams).collect()
    }

    /// Returns the routes whose brownouts are cancelled although they announce none.
    fn without_brownouts(&self) -> Vec<String> {
        let announces = |index: usize| {
            let of_side = |side| self.plan.lifecycle.of(Some(index), side);
            let mut deprecated = Side::ALL.into_iter().filter_map(of_side);
            deprecated.any(|deprecated| !deprecated.announcement().brownouts.is_empty())
        };
        let routes = self.plan.routes.routes().iter().enumerate();
        let announcing: BTreeSet<&str> = routes
            .filter(|(index, _)| announces(*index))
            .map(|(_, route)| route.name.as_str())
            .collect();
        let called_off = self.overrides.called_off.iter();
        let without = called_off.filter(|name| !announcing.contains(name.as_str()));
        without.cloned().collect()
    }

    /// Returns the history of changes, the newest first.
    #[must_use]
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.overrides.history.iter().rev().cloned().collect()
    }

    /// Returns one flag.
    ///
    /// # Errors
    /// Returns [`Refusal::Unknown`] if there is no such flag.
    pub fn flag(&self, name: &str) -> Result<FlagView, Refusal> {
        let mut flags = self.flags.iter().zip(&self.file_flags);
        flags
            .find(|(flag, _)| flag.name.value == name)
            .map(|(flag, file)| self.view(flag, file))
            .ok_or_else(|| self.unknown(name))
    }

    fn view(&self, flag: &RawFlag, file: &RawFlag) -> FlagView {
        let stands = self.overrides.of(&flag.name.value, &flag.text_hash);
        let author = self.author(&flag.name.value);
        FlagView {
            name: flag.name.value.clone(),
            client: flag.client.value.clone(),
            route: flag.route.value.clone(),
            side: flag.side.as_ref().map(|side| side.value),
            stage: flag.stage.value,
            percent: percent(flag),
            headers: headers(flag),
            holdback: Percent::from_thousandths(flag.holdback.value)
                .filter(|share| *share > Percent::NONE),
            without_key: flag.without_key.value,
            file: FileView {
                stage: file.stage.value,
                percent: percent(file),
            },
            tag: self.flag_tag(&flag.name.value),
            flipped: author
                .clone()
                .or_else(|| Some(stands?.flip.as_ref()?.by.clone())),
            tripped: stands.and_then(|stands| stands.trip.clone()),
            guard: self.guards.last_decision(&flag.name.value),
            ramp: ramp(flag, stands).filter(|_| author.is_none()),
        }
    }

    /// Returns the routes in force as a document of a side.
    #[must_use]
    pub fn document(&self, side: Side) -> Json {
        let routes = self.plan.routes.routes();
        let api = ApiInfo::of_clients(&self.plan.rollout.clients);
        rendered(&match side {
            Side::Rest => openapi(routes, &api),
            Side::Rpc => openrpc(routes, &api),
        })
    }

    /// Returns the contents of the plan.
    #[must_use]
    pub fn plan_view(&self) -> PlanView {
        // The compiled routes are in the order of the raw ones, which have the text.
        let routes = self.config.routes.iter().zip(self.plan.routes.routes());
        let rollout = &self.plan.rollout;
        let clients = rollout.clients.all().iter().map(|client| ClientView {
            name: client.name.clone(),
            source: client.matcher.source(),
            proof: client.matcher.source().proof(),
        });
        PlanView {
            routes: routes
                .map(|(raw, route)| RouteView {
                    name: route.name.clone(),
                    rest: raw.rest.value.clone(),
                    rpc: raw.rpc.value.clone(),
                    effect: route.effect,
                })
                .collect(),
            clients: clients.collect(),
            upstreams: self.upstreams(),
            defaults: self.defaults(),
        }
    }

    /// Returns the upstreams, those of the REST side first.
    pub(super) fn upstreams(&self) -> Vec<UpstreamView> {
        let upstreams = Side::ALL.into_iter().flat_map(|side| {
            let all = self.plan.upstreams.all.iter();
            let ours = all.filter(move |upstream| upstream.side == side);
            ours.map(|upstream| UpstreamView {
                name: upstream.name.clone(),
                side: upstream.side,
            })
        });
        upstreams.collect()
    }

    /// Returns the stages of calls that no flag matches.
    pub(super) fn defaults(&self) -> DefaultsView {
        let defaults = &self.plan.rollout.defaults;
        DefaultsView {
            rest: defaults.of(Side::Rest),
            rpc: defaults.of(Side::Rpc),
        }
    }
}

fn headers(flag: &RawFlag) -> BTreeMap<String, String> {
    let rules = flag.headers.iter();
    rules
        .map(|rule| (rule.header.value.to_string(), rule.glob.value.clone()))
        .collect()
}

/// Returns the progress of a flag's ramp, unless a person has taken over.
fn ramp(flag: &RawFlag, stands: Option<&FlagOverrides>) -> Option<RampView> {
    let steps = flag.ramp.as_ref()?.steps.len();
    if stands.is_some_and(|stands| stands.flip.is_some()) {
        return None;
    }
    let stored = stands.and_then(|stands| stands.ramp);
    Some(RampView {
        step: stored.map_or(1, |ramp| ramp.step + 1),
        steps,
        since: stored.map(|ramp| ramp.since),
    })
}
