//! The login of the link that carries a call. Used by `explain`.

use super::view::Explanation;
use crate::plan::Plan;

/// Adds the login to the explanations of calls that go over a link with one. The params are never shown.
pub(super) fn add(plan: &Plan, explanations: &mut [Explanation]) {
    for explanation in explanations {
        let Some(sent) = &explanation.sends else {
            continue;
        };
        let mut upstreams = plan.upstreams.all.iter();
        let upstream = upstreams.find(|upstream| upstream.name == sent.upstream);
        let link = upstream.and_then(|upstream| upstream.transport.link());
        let Some(login) = link.and_then(|link| link.login.as_ref()) else {
            continue;
        };
        let whose = match login.needs_caller() {
            true => "with the caller's credentials",
            false => "with the proxy's credentials",
        };
        let needs = match &login.expect {
            Some(_) => "; its result must match `expect`",
            None => "",
        };
        let method = &login.method;
        explanation.login = Some(format!("{method}, {whose}, before the first call{needs}"));
    }
}
