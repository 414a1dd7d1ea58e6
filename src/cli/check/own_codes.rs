//! Rows that use a code of the proxy's own failures. Used by `check::verdict`.

use std::collections::BTreeMap;

use crate::config::configuration::Configuration;
use crate::config::problem::Problem;
use dualgauge_model::failure::Reason;
use dualgauge_model::outcome::RpcReplyPattern;

/// Returns a note for each row with a code that the proxy uses for a failure of its own. Rows of frames are left out:
/// they define how a frame client learns of such a failure.
pub(super) fn notes(configuration: &Configuration) -> Vec<Problem> {
    let plan = &configuration.plan;
    let codes = &plan.face.failure_codes;
    let mut found = BTreeMap::new();
    let routes = plan.routes.routes().iter();
    for row in routes
        .filter(|route| !route.is_frame())
        .flat_map(|route| route.outcomes.rows())
    {
        let RpcReplyPattern::Error { code, .. } = &row.rpc else {
            continue;
        };
        let own = code
            .numbers()
            .find_map(|code| Some((code, codes.reason_of(code)?)));
        if let Some(own) = own {
            found.insert(row.key.as_str(), own);
        }
    }
    let note = |(key, (code, reason)): (&str, (i64, Reason))| {
        let label = reason.row().label;
        let what = format!(
            "the proxy itself answers {code} for `{label}`, so a client cannot tell the two apart"
        );
        let places = &configuration.raw.places;
        let problem = places.problem(format!("{key}.rpc.error.code"), what);
        problem.hint("write another code, or set that of the proxy with `rpc.failure_codes`")
    };
    found.into_iter().map(note).collect()
}
