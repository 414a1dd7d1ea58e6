//! Flags: rules that assign a stage to calls. Used by `app`, `config`, `model`, `server` and `telemetry`.

use http::{HeaderMap, HeaderName};

use super::client::Caller;
use super::glob::Glob;
use super::guard::Guard;
use super::percent::Percent;
use super::ramp::Ramp;
use super::stage::Stage;
use dualgauge_patterns::side::Side;

/// A rule that assigns a stage to a client, a route and a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// The name, which also seeds its buckets.
    pub name: String,
    /// The matching clients.
    pub client: Glob,
    /// The matching routes.
    pub route: Glob,
    /// The matching side; `None` matches both.
    pub side: Option<Side>,
    /// Headers that must all have a matching value.
    pub headers: Vec<(HeaderName, Glob)>,
    /// The stage that the flag assigns.
    pub stage: Stage,
    /// The percentage of callers that get it.
    pub percent: Percent,
    /// The treatment of callers without a key.
    pub without_key: WithoutKey,
    /// The share of callers that is always excluded, as a baseline for the guard.
    pub holdback: Percent,
    /// The guard that disables the flag if the new way is worse.
    pub guard: Option<Guard>,
    /// The ramp that raises its percentage.
    pub ramp: Option<Ramp>,
    /// Its state: armed or tripped.
    pub arming: Arming,
}

/// The state of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arming {
    /// The flag is active.
    Armed,
    /// The guard has disabled the flag: the next matching flag decides until a person re-arms it.
    Tripped,
}

impl Arming {
    /// Returns the name used in metrics and the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Arming::Armed => "armed",
            Arming::Tripped => "tripped",
        }
    }
}

impl Flag {
    /// Returns true if the flag covers a caller with these headers, on some route and side.
    #[must_use]
    pub fn covers_client(&self, caller: Caller<'_>, headers: &HeaderMap) -> bool {
        self.client.fits(caller.name) && self.fits_headers(headers)
    }

    /// Returns true if each of the headers that the flag names has a matching value.
    pub(super) fn fits_headers(&self, headers: &HeaderMap) -> bool {
        self.headers.iter().all(|(name, glob)| {
            let mut values = headers.get_all(name).iter();
            values.any(|value| value.to_str().is_ok_and(|value| glob.fits(value)))
        })
    }

    /// Returns the share of callers that get the stage: the percentage, limited by the holdback.
    #[must_use]
    pub fn share(&self) -> Percent {
        self.percent.min(self.holdback.rest())
    }
}

/// The treatment of callers without a key by a flag with a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKey {
    /// The flag does not match them.
    Out,
    /// The flag matches them.
    In,
}
