//! The comparison of compiled routes, independent of the text they were compiled from.

use super::definition::Route;
use super::source::Schemas;
use dualgauge_patterns::schema::Schema;

impl Route {
    /// Returns true when both routes read, write and answer every call in the same way. Names, places in the file,
    /// examples and notes for people may differ.
    #[must_use]
    pub fn translates_like(&self, other: &Route) -> bool {
        // Names all fields, so that a new one cannot be forgotten here.
        let Route {
            name: _,
            rest,
            rpc,
            rest_protocol,
            method,
            facts,
            rest_call,
            rpc_call,
            extra,
            unknown_query,
            form,
            from,
            expects_reply,
            effect,
            id,
            silence,
            timeout,
            affinity,
            successor: _,
            outcomes,
            lossy: _,
            examples: _,
            schema,
        } = self;
        (rest, rpc) == (&other.rest, &other.rpc)
            && (rest_protocol, method) == (&other.rest_protocol, &other.method)
            && *facts == other.facts
            && (rest_call, rpc_call) == (&other.rest_call, &other.rpc_call)
            && (extra, unknown_query) == (&other.extra, &other.unknown_query)
            && (form, from, expects_reply) == (&other.form, &other.from, &other.expects_reply)
            && (effect, id, affinity) == (&other.effect, &other.id, &other.affinity)
            && (silence, timeout) == (&other.silence, &other.timeout)
            && outcomes.answers_like(&other.outcomes)
            && schema.allows_like(&other.schema)
    }
}

impl Schemas {
    fn allows_like(&self, other: &Schemas) -> bool {
        let Schemas { params, result } = self;
        let pairs = [(params, &other.params), (result, &other.result)];
        pairs.into_iter().all(|pair| match pair {
            (None, None) => true,
            (Some(one), Some(other)) => Schema::has_source_of(one, other),
            (Some(_), None) | (None, Some(_)) => false,
        })
    }
}
