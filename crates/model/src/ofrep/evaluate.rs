//! The evaluations of a plan's flags for a caller.
//!
//! Used by `ofrep`.

use http::HeaderMap;

use super::context::{EvaluationContext, EvaluationFault};
use crate::plan::Plan;
use crate::rollout::{
    Arming, Caller, Decision, DecisionReason, Flag, Kill, OTHER, Percent, Proof, Requester, Stage,
    Way,
};
use crate::routing::decide;
use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

const STAGE: &str = "stage:";
const NEW: &str = "new:";
const FLAG: &str = "flag:";

/// A flag with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// The key of the flag.
    pub key: String,
    /// The value.
    pub value: EvaluatedValue,
    /// The reason for the value.
    pub reason: EvaluationReason,
    /// The name of the value.
    pub variant: &'static str,
    /// The rule that decided, as the log of a call has it.
    pub rule: String,
}

/// The value of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvaluatedValue {
    /// The stage of a call.
    Stage(Stage),
    /// True if the new side serves a call.
    IsNew(bool),
    /// The values of a flag in force.
    Flag {
        /// The stage.
        stage: Stage,
        /// The percentage of callers.
        percent: Percent,
    },
}

/// The reason for a value, as OpenFeature names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EvaluationReason {
    /// The value is the same for all callers.
    Static,
    /// No flag matches the caller.
    Default,
    /// A flag matches the caller.
    TargetingMatch,
    /// A flag with a percentage includes the caller.
    Split,
    /// The guard or the kill switch has turned the flags off.
    Disabled,
}

impl EvaluationReason {
    /// Returns the word of OpenFeature.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            EvaluationReason::Static => "STATIC",
            EvaluationReason::Default => "DEFAULT",
            EvaluationReason::TargetingMatch => "TARGETING_MATCH",
            EvaluationReason::Split => "SPLIT",
            EvaluationReason::Disabled => "DISABLED",
        }
    }

    const fn of(why: DecisionReason) -> EvaluationReason {
        match why {
            DecisionReason::Flag(_) | DecisionReason::Keyless(_) | DecisionReason::Session(_) => {
                EvaluationReason::TargetingMatch
            }
            DecisionReason::Share(..) => EvaluationReason::Split,
            DecisionReason::Default | DecisionReason::Unrouted => EvaluationReason::Default,
            DecisionReason::Killed => EvaluationReason::Disabled,
            DecisionReason::Brownout
            | DecisionReason::Route
            | DecisionReason::Local
            | DecisionReason::Preflight
            | DecisionReason::ResourceMetadata => EvaluationReason::Static,
        }
    }
}

/// Returns the value of a flag for a caller at a time.
///
/// # Errors
/// Returns an [`EvaluationFault`] if there is no such flag or client, or the key of the caller is missing.
pub fn evaluate(
    plan: &Plan,
    key: &str,
    context: &EvaluationContext,
    at: Timestamp,
) -> Result<Evaluated, EvaluationFault> {
    let subject = Subject::new(plan, context)?;
    if let Some(name) = key.strip_prefix(FLAG) {
        let mut flags = plan.rollout.flags.iter();
        let flag = flags.find(|flag| flag.name == name);
        return Ok(flag_in_force(plan, flag.ok_or(EvaluationFault::NotFound)?));
    }
    let (wanted, name) = match (key.strip_prefix(STAGE), key.strip_prefix(NEW)) {
        (Some(name), _) => (Wanted::Stage, name),
        (None, Some(name)) => (Wanted::IsNew, name),
        (None, None) => return Err(EvaluationFault::NotFound),
    };
    let mut routes = plan.routes.routes().iter();
    let route = routes.position(|route| route.name == name);
    let decision = subject.decide(route.ok_or(EvaluationFault::NotFound)?, at)?;
    Ok(wanted.of(plan, key.to_owned(), &decision))
}

/// A flag without a value: its key, and the reason.
pub type Failed = (String, EvaluationFault);

/// Returns the values of all flags for a caller at a time, in the order of the plan.
///
/// # Errors
/// Returns an [`EvaluationFault`] if there is no such client.
pub fn evaluate_all(
    plan: &Plan,
    context: &EvaluationContext,
    at: Timestamp,
) -> Result<Vec<Result<Evaluated, Failed>>, EvaluationFault> {
    let subject = Subject::new(plan, context)?;
    let mut all = Vec::new();
    for (index, route) in plan.routes.routes().iter().enumerate() {
        let decision = subject.decide(index, at);
        for (wanted, prefix) in [(Wanted::Stage, STAGE), (Wanted::IsNew, NEW)] {
            let key = [prefix, &route.name].concat();
            all.push(match &decision {
                Ok(decision) => Ok(wanted.of(plan, key, decision)),
                Err(fault) => Err((key, fault.clone())),
            });
        }
    }
    let flags = plan.rollout.flags.iter();
    all.extend(flags.map(|flag| Ok(flag_in_force(plan, flag))));
    Ok(all)
}

/// The value that is read from a decision.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Stage,
    IsNew,
}

impl Wanted {
    fn of(self, plan: &Plan, key: String, decision: &Decision) -> Evaluated {
        let stage = decision.stage;
        let (value, variant) = match self {
            Wanted::Stage => (EvaluatedValue::Stage(stage), stage.as_str()),
            Wanted::IsNew => {
                let way = stage.control();
                let variant = way.map_or("refused", Way::as_str);
                (EvaluatedValue::IsNew(way == Some(Way::New)), variant)
            }
        };
        Evaluated {
            key,
            value,
            variant,
            reason: EvaluationReason::of(decision.why),
            rule: plan.rollout.describe(decision.why).into_owned(),
        }
    }
}

/// Returns the values of a flag in force. A flag that is off takes no caller.
fn flag_in_force(plan: &Plan, flag: &Flag) -> Evaluated {
    let off = if plan.rollout.kill == Kill::On {
        Some("kill switch")
    } else {
        (flag.arming == Arming::Tripped).then_some("tripped by its guard")
    };
    let percent = match off {
        Some(_) => Percent::NONE,
        None => flag.share(),
    };
    Evaluated {
        key: [FLAG, &flag.name].concat(),
        value: EvaluatedValue::Flag {
            stage: flag.stage,
            percent,
        },
        reason: match off {
            Some(_) => EvaluationReason::Disabled,
            None => EvaluationReason::Static,
        },
        variant: flag.stage.as_str(),
        rule: off.unwrap_or("flag in force").to_owned(),
    }
}

/// The caller of a context.
struct Subject<'p, 'c> {
    plan: &'p Plan,
    context: &'c EvaluationContext,
    client: Option<usize>,
    /// True if callers of this client have keys.
    has_keys: bool,
}

impl<'p, 'c> Subject<'p, 'c> {
    fn new(plan: &'p Plan, context: &'c EvaluationContext) -> Result<Self, EvaluationFault> {
        let clients = plan.rollout.clients.all();
        let client = clients.iter().position(|one| one.name == context.client);
        if client.is_none() && context.client != OTHER {
            let what = "`client` is not the name of a client, nor `other`";
            return Err(EvaluationFault::Context(what.to_owned()));
        }
        Ok(Subject {
            plan,
            context,
            client,
            has_keys: client.is_some_and(|index| clients[index].key.is_some()),
        })
    }

    fn decide(&self, route: usize, at: Timestamp) -> Result<Decision, EvaluationFault> {
        let definition = self.plan.routes.route(route);
        let mut sides = Side::ALL.into_iter();
        let side = match self.context.side {
            Some(side) => definition.enters_from(side).then_some(side),
            None => sides.find(|side| definition.enters_from(*side)),
        };
        let side = side.ok_or_else(|| {
            EvaluationFault::Context("the route accepts no calls from this `side`".to_owned())
        })?;
        let key = self.context.targeting_key.as_deref();
        let caller = Caller {
            client: self.client,
            name: &self.context.client,
            // A live call of a client without keys never has one, and an empty one counts as none.
            key: key.filter(|key| self.has_keys && !key.is_empty()),
            proof: match self.client {
                Some(_) => Proof::Declared,
                None => Proof::None,
            },
        };
        let headers: &HeaderMap = &self.context.headers;
        let requester = Requester::new(caller, headers);
        let decision = decide(self.plan, requester, Some(route), side, at);
        if key.is_none() && self.has_keys && self.needs_key(&decision) {
            return Err(EvaluationFault::TargetingKey);
        }
        Ok(decision)
    }

    /// Returns true if a caller with a key might get another decision.
    fn needs_key(&self, decision: &Decision) -> bool {
        let flags = &self.plan.rollout.flags;
        let mut excluding = decision.excluded_by.iter();
        matches!(decision.why, DecisionReason::Keyless(_))
            || excluding.any(|index| {
                let flag = flags.get(*index);
                flag.is_some_and(|flag| flag.share() > Percent::NONE)
            })
    }
}
