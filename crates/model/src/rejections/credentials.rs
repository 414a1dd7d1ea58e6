//! The rejection of calls without the credentials of a client.

use crate::failure::{Advice, Failure, Reason};
use crate::rollout::{Client, Clients, CredentialFault, MatcherSource, Proof};

/// Returns the failure of a call without the credentials that the listener requires.
#[must_use]
pub fn unauthenticated(clients: &Clients, fault: CredentialFault) -> Failure {
    let forms = clients.api_keys().forms;
    let places = match (forms.bearer, forms.basic) {
        (true, true) => ", as a bearer token, as the password of HTTP Basic",
        (true, false) => ", as a bearer token",
        (false, true) => ", as the password of HTTP Basic",
        (false, false) => "",
    };
    let what = match fault {
        CredentialFault::Missing => "credentials are required",
        CredentialFault::Unknown => "the credentials are not those of a client of this proxy",
    };
    let is_other = |client: &Client| {
        let source = client.matcher.source();
        source.proof() == Proof::Authenticated && source != MatcherSource::ApiKey
    };
    let others = match clients.all().iter().any(is_other) {
        true => ", or the credentials of another client of this proxy",
        false => "",
    };
    let message = format!(
        "{what}: send an API key in `{}`{places}{others}",
        clients.api_key()
    );
    // Not `credentials: …`, which the log would hide.
    let cause = format!("{} credentials", fault.as_str());
    let advice = Advice::Authenticate(clients.challenges());
    Failure::new(Reason::Unauthenticated, message)
        .because(cause)
        .advise(advice)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;
    use crate::rollout::Matcher;

    #[test]
    fn other_credentials_are_named_if_a_client_has_them() {
        let said = |matchers: Vec<Matcher>| {
            let clients = matchers.into_iter().map(|matcher| Client {
                name: "a".into(),
                matcher,
                key: None,
            });
            let clients = Clients::new(clients.collect(), HeaderName::from_static("x-key"));
            unauthenticated(&clients, CredentialFault::Missing).message
        };
        let key = || Matcher::ApiKey(vec![[7; 32]]);
        let own = "credentials are required: send an API key in `x-key`";
        assert_eq!(said(vec![key(), Matcher::Headers(Vec::new())]), own);
        let others = format!("{own}, or the credentials of another client of this proxy");
        assert_eq!(said(vec![key(), Matcher::Subject(Vec::new())]), others);
    }
}
