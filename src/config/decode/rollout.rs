//! `[rollout]` Used by `decode`.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;

use super::shared::STAGES;
use super::{bearer, candidates, source, store};
use crate::config::key::{Key, SubTable, key, section, table};
use crate::config::kind::{DURATION, FILE, HEADER, boolean, words};
use crate::config::raw::RawRollout;
use crate::config::table_reader::Table;
use dualgauge_model::rollout::Stage;

section! {
    /// `[rollout.default]`
    DEFAULTS {
        /// Stage of REST calls without a flag; passthrough with a REST upstream, else translate
        REST: Key<Stage> = key("rest", words(STAGES));
        /// Stage of RPC calls without a flag; passthrough with an RPC upstream, else translate
        RPC: Key<Stage> = key("rpc", words(STAGES));
    }
}

section! {
    /// `[rollout.api_key]`
    API_KEYS {
        /// Header with the API key of the caller
        API_KEY_HEADER: Key<HeaderName> = key("header", HEADER).or("x-api-key");
        /// The key may also be the bearer token of `authorization`; `false` by default
        API_KEY_AS_BEARER: Key<bool> = key("authorization", boolean(&[false, true]));
        /// The key may also be the password of HTTP Basic, which browsers ask for; `false` by default
        API_KEY_AS_PASSWORD: Key<bool> = key("basic", boolean(&[false, true]));
    }
}

section! {
    /// `[rollout]`
    pub(super) ROLLOUT {
        /// The flags file
        FLAGS: Key<PathBuf> = key("flags", FILE);
        /// Folder for the state of the proxy
        STATE: Key<PathBuf> = key("state", FILE).or("state/");
        /// Shared store of replicas, instead of files in `state`
        STORE: SubTable = table("store", &store::STORE);
        /// Server with the values of flags
        SOURCE: SubTable = table("source", &source::SOURCE);
        /// Stages of calls without a flag
        DEFAULT: SubTable = table("default", &DEFAULTS);
        /// API keys of callers
        API_KEY: SubTable = table("api_key", &API_KEYS).implied();
        /// Response header with the decision
        DECISION_HEADER: Key<HeaderName> = key("decision_header", HEADER);
        /// Time that a session keeps its first decision after a flag changes
        SESSION_GRACE: Key<Duration> = key("session_grace", DURATION).or("15m");
        /// Accepted bearer tokens
        BEARER: SubTable = table("bearer", &bearer::BEARER);
        /// Limits of candidates
        CANDIDATES: SubTable = table("candidates", &candidates::CANDIDATES).implied();
    }
}

pub(super) fn rollout(table: &mut Table<'_>) -> Option<RawRollout> {
    let flags = table.get(&FLAGS);
    let state = table.get(&STATE);
    let store = store::within(table, &STORE);
    let source = table.table(&SOURCE, source::source);
    let defaults = table.table(&DEFAULT, |default| {
        Some((default.get(&REST), default.get(&RPC)))
    });
    let (default_rest, default_rpc) = defaults.unwrap_or((None, None));
    let api_key = table.table(&API_KEY, |key| {
        let forms = (key.get(&API_KEY_AS_BEARER), key.get(&API_KEY_AS_PASSWORD));
        Some((key.get(&API_KEY_HEADER)?, forms))
    });
    let decision_header = table.get(&DECISION_HEADER);
    let session_grace = table.get(&SESSION_GRACE);
    let bearer = table.table(&BEARER, bearer::bearer);
    let candidates = table.table(&CANDIDATES, candidates::candidates);
    let (api_key_header, (api_key_as_bearer, api_key_as_password)) = api_key?;
    Some(RawRollout {
        flags,
        state: state?,
        store,
        source,
        default_rest,
        default_rpc,
        api_key_header,
        api_key_as_bearer,
        api_key_as_password,
        decision_header,
        session_grace: session_grace?,
        bearer,
        candidates: candidates?,
    })
}
