//! Stages, and the two ways of serving a call. Used in most modules.

use dualgauge_patterns::side::Side;

/// The stage of a call: which upstream serves it and which one it is compared with.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Sends the call unchanged to the upstream of its own side.
    Passthrough,
    /// Like `Passthrough`, and also translates the call and compares the two responses afterwards.
    Shadow,
    /// Like `Translate`, and also passes the call through and compares the two responses afterwards.
    Verify,
    /// Rewrites the call for the upstream of the other side, and rewrites the response back.
    Translate,
    /// Rejects the call with 410 Gone or an RPC error that names the successor.
    Retired,
}

impl Stage {
    /// All stages.
    pub const ALL: [Stage; 5] = [
        Stage::Passthrough,
        Stage::Shadow,
        Stage::Verify,
        Stage::Translate,
        Stage::Retired,
    ];

    /// Returns the name used in configuration, metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Stage::Passthrough => "passthrough",
            Stage::Shadow => "shadow",
            Stage::Verify => "verify",
            Stage::Translate => "translate",
            Stage::Retired => "retired",
        }
    }

    /// Parses the name of a stage.
    #[must_use]
    pub fn parse(word: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == word)
    }

    /// Returns the way whose response the client gets; `None` if the call is rejected.
    #[must_use]
    pub const fn control(self) -> Option<Way> {
        match self {
            Stage::Passthrough | Stage::Shadow => Some(Way::Old),
            Stage::Verify | Stage::Translate => Some(Way::New),
            Stage::Retired => None,
        }
    }

    /// Returns the way that is called only for comparison.
    #[must_use]
    pub const fn candidate(self) -> Option<Way> {
        match self {
            Stage::Shadow => Some(Way::New),
            Stage::Verify => Some(Way::Old),
            Stage::Passthrough | Stage::Translate | Stage::Retired => None,
        }
    }

    /// Returns the sides whose upstreams a call of `side` needs in this stage.
    pub fn needs(self, side: Side) -> impl Iterator<Item = Side> {
        let ways = self.control().into_iter().chain(self.candidate());
        ways.map(move |way| way.leads_to(side))
    }
}

/// The two ways of serving a call: before and after the migration of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Way {
    /// Unchanged, through the upstream of its own side.
    Old,
    /// Translated, through the upstream of the other side.
    New,
}

impl Way {
    /// Returns the side whose upstream serves a call of `side` on this way.
    #[must_use]
    pub const fn leads_to(self, side: Side) -> Side {
        match self {
            Way::Old => side,
            Way::New => side.other(),
        }
    }

    /// Returns the name used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Way::Old => "old",
            Way::New => "new",
        }
    }
}
