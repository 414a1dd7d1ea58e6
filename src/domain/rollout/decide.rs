//! The decision: which stage a call gets, and which rule says so.

use std::borrow::Cow;
use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::{
    Arming, Bucket, Caller, Clients, Flag, FlagHistory, Flags, Membership, Path, Percent,
    ProcessTime, SessionStart, Stage, WithoutKey, bucket,
};
use crate::domain::lifecycle::Brownouts;
use crate::domain::side::Side;

/// Everything that decides.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// Who may call.
    pub clients: Clients,
    /// The rules, in order.
    pub flags: Flags,
    /// What calls get that no rule matches.
    pub defaults: Defaults,
    /// How long a session keeps the decision that it began with after a flag was changed.
    pub session_grace: Duration,
    /// Whether all of that is suspended.
    pub kill: Kill,
    /// The header by which an answer tells its decision, where it does.
    pub decision_header: Option<HeaderName>,
    /// Which of the announced brownouts hold.
    pub brownouts: Brownouts,
}

/// The kill switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// The rollout decides.
    Off,
    /// Every call passes through whose side has an upstream.
    On,
}

/// One call, as far as the rollout sees it.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// Who calls.
    pub caller: Caller<'a>,
    /// The name of the route.
    pub route: &'a str,
    /// The language of the call.
    pub side: Side,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The session that it belongs to, if it does: what its flags were decides.
    pub session: Option<SessionStart<'a>>,
}

/// The default stage of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// Of REST calls.
    pub rest: Stage,
    /// Of RPC calls.
    pub rpc: Stage,
}

impl Defaults {
    /// The default of a side.
    #[must_use]
    pub const fn of(self, side: Side) -> Stage {
        match side {
            Side::Rest => self.rest,
            Side::Rpc => self.rpc,
        }
    }
}

/// The stage of one call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The stage.
    pub stage: Stage,
    /// The rule.
    pub why: DecisionReason,
    /// The guarded flags in force that cover the call and whose share its caller is not in, by their places: what
    /// becomes of the call is what their guards compare with. Where the caller has no key, all such flags.
    pub spared: Vec<usize>,
}

impl Decision {
    /// A decision that no flag has a part in.
    #[must_use]
    pub const fn plain(stage: Stage, why: DecisionReason) -> Decision {
        Decision {
            stage,
            why,
            spared: Vec::new(),
        }
    }
}

/// Which rule chose a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionReason {
    /// A flag that takes everyone whom it covers, by its place in the rollout.
    Flag(usize),
    /// A flag with a percentage, and the caller's bucket in it.
    Share(usize, Bucket),
    /// A flag with a percentage that takes callers without a key.
    Keyless(usize),
    /// A flag as it was when the caller's session began.
    Session(usize),
    /// No flag matched.
    Default,
    /// The kill switch is on.
    Killed,
    /// The old way is refused for a while, to be noticed.
    Brownout,
    /// The call belongs to no route.
    Unrouted,
    /// The proxy itself answers: a `[[local]]` says so.
    Local,
    /// The proxy itself answers what a browser asks before a call that it would serve.
    Preflight,
}

impl DecisionReason {
    /// The kind of rule that it is.
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
            DecisionReason::Unrouted => DecidedBy::Unrouted,
            DecisionReason::Local => DecidedBy::Local,
            DecisionReason::Preflight => DecidedBy::Preflight,
        }
    }

    /// The flag that has decided, by its place in the rollout.
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
            | DecisionReason::Unrouted
            | DecisionReason::Local
            | DecisionReason::Preflight => None,
        }
    }
}

/// The kinds of rules, as metrics count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecidedBy {
    /// A flag that takes everyone whom it covers.
    Flag,
    /// A flag whose share the caller's bucket lies in.
    Share,
    /// A flag with a percentage that takes callers without a key.
    Keyless,
    /// A flag as it was when the caller's session began.
    Session,
    /// The default stage of the side.
    Default,
    /// The kill switch.
    KillSwitch,
    /// A brownout.
    Brownout,
    /// There is no route to decide for.
    Unrouted,
    /// A `[[local]]`.
    Local,
    /// The preflight of a browser.
    Preflight,
}

impl DecidedBy {
    /// The word used in metrics.
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
            DecidedBy::Unrouted => "unrouted",
            DecidedBy::Local => "local",
            DecidedBy::Preflight => "preflight",
        }
    }
}

impl Rollout {
    /// Decides for one call of a route.
    #[must_use]
    pub fn decide(&self, call: &CallFacts<'_>) -> Decision {
        let mut spared = Vec::new();
        for (index, flag) in self.flags.near(call.caller.name, call.route) {
            if flag.arming == Arming::Tripped || !flag.covers(call) {
                continue;
            }
            let was = call
                .session
                .as_ref()
                .and_then(|session| session.was(&flag.name));
            let now = (flag.stage, Membership::Share(flag.share()));
            let (stage, taken) = was.map_or(now, |was| (was.stage, was.taken));
            if let Some(why) = matches((index, flag, taken), call.caller.key) {
                let why = was.map_or(why, |_| DecisionReason::Session(index));
                return Decision { stage, why, spared };
            }
            if flag.guard.is_some() || call.caller.key.is_none() {
                spared.push(index);
            }
        }
        Decision {
            stage: self.defaults.of(call.side),
            why: DecisionReason::Default,
            spared,
        }
    }

    /// Whether a call of a side may get another stage than passthrough and shadow: by the default, or by a flag in force
    /// that speaks of the side and, where a caller is given, of its client, whatever the percentage is.
    #[must_use]
    pub fn may_move(&self, side: Side, caller: Option<(Caller<'_>, &HeaderMap)>) -> bool {
        let moves = |stage: Stage| stage.control() != Some(Path::Old);
        let takes = |flag: &Flag| {
            flag.arming == Arming::Armed
                && flag.share() != Percent::NONE
                && flag.side.is_none_or(|own| own == side)
                && caller.is_none_or(|(caller, headers)| flag.covers_client(caller, headers))
        };
        self.kill == Kill::Off
            && (moves(self.defaults.of(side))
                || self
                    .flags
                    .iter()
                    .any(|flag| moves(flag.stage) && takes(flag)))
    }

    /// Whether a session of a client may keep another stage than passthrough and shadow from before a change of a flag.
    #[must_use]
    pub fn session_may_move(
        &self,
        (past, now): (&FlagHistory, ProcessTime),
        side: Side,
        (caller, headers): (Caller<'_>, &HeaderMap),
    ) -> bool {
        let kept = |flag: &Flag| {
            past.kept(&flag.name, now).any(|was| {
                was.stage.control() != Some(Path::Old)
                    && matches!(was.taken, Membership::Share(share) if share != Percent::NONE)
            })
        };
        self.kill == Kill::Off
            && self.flags.iter().any(|flag| {
                flag.arming == Arming::Armed
                    && flag.side.is_none_or(|own| own == side)
                    && flag.covers_client(caller, headers)
                    && kept(flag)
            })
    }

    /// The rule in words, for the log: `flag ios-first bucket 17342`.
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
            DecisionReason::Unrouted => "unrouted".into(),
            DecisionReason::Local => "local".into(),
            DecisionReason::Preflight => "preflight".into(),
        }
    }
}

/// Whether a flag takes a caller whom it covers.
fn matches(
    (index, flag, taken): (usize, &Flag, Membership),
    key: Option<&str>,
) -> Option<DecisionReason> {
    let Membership::Share(share) = taken else {
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
