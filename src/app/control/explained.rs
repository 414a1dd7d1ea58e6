//! What becomes of a call that is not made, with the plan in force: what was changed at run time counts.

use http::Uri;
use sha2::{Digest as _, Sha256};

use crate::domain::claim::Head;
use crate::domain::explain::{Asked, Explanation, Means, explain};
use crate::domain::plan::Plan;
use crate::server::admin::Supposed;
use crate::telemetry::clock;

/// Explains a call. Nothing is sent, counted or changed.
pub(super) fn explained(plan: &Plan, call: &Supposed) -> Vec<Explanation> {
    let rpc = plan.face.paths.first();
    let rpc = || {
        rpc.and_then(|path| path.parse().ok())
            .unwrap_or(Uri::from_static("/"))
    };
    let target = call.target.clone().unwrap_or_else(rpc);
    let asked = Asked {
        head: Head {
            method: &call.method,
            uri: &target,
            headers: &call.headers,
        },
        peer: call.from,
        body: &call.body,
        reply: None,
    };
    let means = Means {
        digest: |key| Sha256::digest(key).into(),
        now: clock::rfc3339,
        unix_seconds: clock::whole_unix_seconds,
    };
    explain(plan, asked, means)
}
