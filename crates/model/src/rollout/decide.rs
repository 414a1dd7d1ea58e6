//! The rollout decision: the stage of a call, and the rule that chose it.
//!
//! Used by `app`, `config`, `model`, `gateway` and `telemetry`.

use std::borrow::Cow;
use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::{
    Arming, Bucket, Caller, Clients, Flag, FlagHistory, Flags, Membership, Percent, PlanStart,
    ProcessTime, SessionStart, Stage, Way, WithoutKey, bucket,
};
use crate::lifecycle::Brownouts;
use dualgauge_patterns::side::Side;

/// All inputs of a decision that come from the configuration and from overrides.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// The known clients.
    pub clients: Clients,
    /// The rules, in order.
    pub flags: Flags,
    /// The stages of calls that no rule matches.
    pub defaults: Defaults,
    /// The time for which a session keeps its initial decision after a flag changes.
    pub session_grace: Duration,
    /// The kill switch, which suspends all of the above.
    pub kill: Kill,
    /// The response header that reports the decision, if configured.
    pub decision_header: Option<HeaderName>,
    /// The active brownouts.
    pub brownouts: Brownouts,
}

/// The state of the kill switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// The rollout decides.
    Off,
    /// Every call passes through if its side has an upstream.
    On,
}

/// The sender of a request, as flags match it.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// The caller.
    pub caller: Caller<'a>,
    /// The headers of the request.
    pub headers: &'a HeaderMap,
    /// The session of the request, if any: the flags at its start decide.
    pub session: Option<SessionStart<'a>>,
}

impl<'a> Requester<'a> {
    /// Creates a requester without a session.
    #[must_use]
    pub const fn new(caller: Caller<'a>, headers: &'a HeaderMap) -> Requester<'a> {
        Requester {
            caller,
            headers,
            session: None,
        }
    }

    /// Sets the session.
    #[must_use]
    pub const fn with_session(self, session: Option<SessionStart<'a>>) -> Requester<'a> {
        Requester { session, ..self }
    }

    /// Returns the facts about a call of a route, named `route`.
    #[must_use]
    pub const fn call(self, route: &'a str, side: Side) -> CallFacts<'a> {
        CallFacts {
            caller: self.caller,
            route,
            side,
            headers: self.headers,
            session: self.session,
        }
    }
}

/// The facts about a call that the rollout decides by.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The caller.
    pub caller: Caller<'a>,
    /// The name of the route.
    pub route: &'a str,
    /// The protocol side of the call.
    pub side: Side,
    /// The headers of the call.
    pub headers: &'a HeaderMap,
    /// The session of the call, if any: the flags at its start decide.
    pub session: Option<SessionStart<'a>>,
}

impl Flag {
    /// Returns true if the flag covers a call, regardless of its percentage.
    #[must_use]
    pub fn covers(&self, call: &CallFacts<'_>) -> bool {
        self.side.is_none_or(|own| own == call.side)
            && self.client.fits(call.caller.name)
            && self.route.fits(call.route)
            && self.fits_headers(call.headers)
    }
}

/// The default stage of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// The stage of REST calls.
    pub rest: Stage,
    /// The stage of RPC calls.
    pub rpc: Stage,
}

impl Defaults {
    /// Returns the default stage of a side.
    #[must_use]
    pub const fn of(self, side: Side) -> Stage {
        match side {
            Side::Rest => self.rest,
            Side::Rpc => self.rpc,
        }
    }
}

/// The stage of a call and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The stage.
    pub stage: Stage,
    /// The rule that chose it.
    pub why: DecisionReason,
    /// The indexes of the active guarded flags that cover the call but whose share excludes its caller. Their guards
    /// use the outcome of the call as the baseline. If the caller has no key, all active guarded flags that cover the
    /// call.
    pub excluded_by: Vec<usize>,
}

impl Decision {
    /// Creates a decision in which no flag takes part.
    #[must_use]
    pub const fn plain(stage: Stage, why: DecisionReason) -> Decision {
        Decision {
            stage,
            why,
            excluded_by: Vec::new(),
        }
    }
}

/// The rule that chose a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionReason {
    /// A flag for all callers that it covers, by its index in the rollout.
    Flag(usize),
    /// A flag with a percentage, and the bucket of the caller.
    Share(usize, Bucket),
    /// A flag with a percentage that includes callers without a key.
    Keyless(usize),
    /// A flag as it was when the caller's session began.
    Session(usize),
    /// The default: no flag matched.
    Default,
    /// The kill switch.
    Killed,
    /// A brownout: calls of the deprecated side are rejected for a while.
    Brownout,
    /// The route has `stage`.
    Route,
    /// No route matched.
    Unrouted,
    /// A `[[local]]` response of the proxy.
    Local,
    /// A CORS preflight that the proxy answers.
    Preflight,
    /// A request for the protected resource metadata of an MCP server.
    ResourceMetadata,
}

impl DecisionReason {
    /// Returns the kind of the rule.
    #[must_use]
    pub const fn decided_by(self) -> DecidedBy {
        match self {
            DecisionReason::Flag(_) => DecidedBy::Flag,
            DecisionReason::Share(..) => DecidedBy::Share,
            DecisionReason::Keyless(_) => DecidedBy::Keyless,
            DecisionReason::Session(_) => DecidedBy::Session,
            DecisionReason::Default => DecidedBy::Default,
            DecisionReason::Killed => DecidedBy::KillSwitch,
            DecisionReason::Brownout => DecidedBy::Brownout,
            DecisionReason::Route => DecidedBy::Route,
            DecisionReason::Unrouted => DecidedBy::Unrouted,
            DecisionReason::Local => DecidedBy::Local,
            DecisionReason::Preflight => DecidedBy::Preflight,
            DecisionReason::ResourceMetadata => DecidedBy::ResourceMetadata,
        }
    }

    /// Returns the index of the flag that decided.
    #[must_use]
    pub const fn flag(self) -> Option<usize> {
        match self {
            DecisionReason::Flag(flag)
            | DecisionReason::Share(flag, _)
            | DecisionReason::Keyless(flag)
            | DecisionReason::Session(flag) => Some(flag),
            DecisionReason::Default
            | DecisionReason::Killed
            | DecisionReason::Brownout
            | DecisionReason::Route
            | DecisionReason::Unrouted
            | DecisionReason::Local
            | DecisionReason::Preflight
            | DecisionReason::ResourceMetadata => None,
        }
    }
}

/// The kinds of rules, as metrics count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecidedBy {
    /// A flag for all callers that it covers.
    Flag,
    /// A flag whose share includes the bucket of the caller.
    Share,
    /// A flag with a percentage that includes callers without a key.
    Keyless,
    /// A flag as it was when the caller's session began.
    Session,
    /// The default stage of the side.
    Default,
    /// The kill switch.
    KillSwitch,
    /// A brownout.
    Brownout,
    /// `stage` of the route.
    Route,
    /// No route matched.
    Unrouted,
    /// A `[[local]]` response.
    Local,
    /// A CORS preflight.
    Preflight,
    /// Protected resource metadata of an MCP server.
    ResourceMetadata,
}

impl DecidedBy {
    /// Returns the name used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DecidedBy::Flag => "flag",
            DecidedBy::Share => "share",
            DecidedBy::Keyless => "keyless",
            DecidedBy::Session => "session",
            DecidedBy::Default => "default",
            DecidedBy::KillSwitch => "kill_switch",
            DecidedBy::Brownout => "brownout",
            DecidedBy::Route => "route",
            DecidedBy::Unrouted => "unrouted",
            DecidedBy::Local => "local",
            DecidedBy::Preflight => "preflight",
            DecidedBy::ResourceMetadata => "resource_metadata",
        }
    }
}

impl Rollout {
    /// Returns the history of flags after this rollout replaces `flags`, whose history is `past`.
    #[must_use]
    pub fn history_after(
        &self,
        past: &FlagHistory,
        flags: &[Flag],
        start: PlanStart,
    ) -> FlagHistory {
        past.followed(flags, &self.flags, self.session_grace, start)
    }

    /// Returns the decision for a call of a route.
    #[must_use]
    pub fn decide(&self, call: &CallFacts<'_>) -> Decision {
        let mut excluded_by = Vec::new();
        for (index, flag) in self.flags.near(call.caller.name, call.route) {
            if flag.arming == Arming::Tripped || !flag.covers(call) {
                continue;
            }
            let was = call
                .session
                .as_ref()
                .and_then(|session| session.was(&flag.name));
            let now = (flag.stage, Membership::Share(flag.share()));
            let (stage, membership) = was.map_or(now, |was| (was.stage, was.membership));
            if let Some(why) = matches(index, flag, membership, call.caller.key) {
                let why = was.map_or(why, |_| DecisionReason::Session(index));
                return Decision {
                    stage,
                    why,
                    excluded_by,
                };
            }
            if flag.guard.is_some() || call.caller.key.is_none() {
                excluded_by.push(index);
            }
        }
        Decision {
            stage: self.defaults.of(call.side),
            why: DecisionReason::Default,
            excluded_by,
        }
    }

    /// Returns true if a call of this side may get a stage other than passthrough and shadow: from the default, or
    /// from an active flag for the side and, if a requester is given, for its client. Percentages are ignored.
    #[must_use]
    pub fn may_move(&self, side: Side, requester: Option<Requester<'_>>) -> bool {
        let moves = |stage: Stage| stage.control() != Some(Way::Old);
        let takes = |flag: &Flag| {
            flag.arming == Arming::Armed
                && flag.share() != Percent::NONE
                && flag.side.is_none_or(|flag_side| flag_side == side)
                && requester.is_none_or(|from| flag.covers_client(from.caller, from.headers))
        };
        self.kill == Kill::Off
            && (moves(self.defaults.of(side))
                || self
                    .flags
                    .iter()
                    .any(|flag| moves(flag.stage) && takes(flag)))
    }

    /// Returns true if a session of a client may keep a stage other than passthrough and shadow from before a flag
    /// changed.
    #[must_use]
    pub fn session_may_move(
        &self,
        past: &FlagHistory,
        now: ProcessTime,
        side: Side,
        requester: Requester<'_>,
    ) -> bool {
        let may_move = |flag: &Flag| {
            past.retained(&flag.name, now).any(|was| {
                was.stage.control() != Some(Way::Old)
                    && matches!(was.membership, Membership::Share(share) if share != Percent::NONE)
            })
        };
        self.kill == Kill::Off
            && self.flags.iter().any(|flag| {
                flag.arming == Arming::Armed
                    && flag.side.is_none_or(|flag_side| flag_side == side)
                    && flag.covers_client(requester.caller, requester.headers)
                    && may_move(flag)
            })
    }

    /// Describes the rule for the log: `flag ios-first bucket 17342`.
    #[must_use]
    pub fn describe(&self, why: DecisionReason) -> Cow<'_, str> {
        let flag = |index| self.flags.words(index);
        match why {
            DecisionReason::Flag(index) => flag(index).into(),
            DecisionReason::Share(index, bucket) => {
                format!("{} bucket {}", flag(index), bucket.get()).into()
            }
            DecisionReason::Keyless(index) => [flag(index), " without key"].concat().into(),
            DecisionReason::Session(index) => {
                [flag(index), " as the session began"].concat().into()
            }
            DecisionReason::Default => "default".into(),
            DecisionReason::Killed => "kill switch".into(),
            DecisionReason::Brownout => "brownout".into(),
            DecisionReason::Route => "route".into(),
            DecisionReason::Unrouted => "unrouted".into(),
            DecisionReason::Local => "local".into(),
            DecisionReason::Preflight => "preflight".into(),
            DecisionReason::ResourceMetadata => "resource metadata".into(),
        }
    }
}

/// Returns the reason if the flag matches a caller that it covers.
fn matches(
    index: usize,
    flag: &Flag,
    membership: Membership,
    key: Option<&str>,
) -> Option<DecisionReason> {
    let Membership::Share(share) = membership else {
        return None;
    };
    if share == Percent::ALL {
        return Some(DecisionReason::Flag(index));
    }
    match key {
        Some(key) => {
            let bucket = bucket(&flag.name, key);
            share
                .takes(bucket)
                .then_some(DecisionReason::Share(index, bucket))
        }
        None => match flag.without_key {
            WithoutKey::In => Some(DecisionReason::Keyless(index)),
            WithoutKey::Out => None,
        },
    }
}
