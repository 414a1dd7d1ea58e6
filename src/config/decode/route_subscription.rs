//! `subscription` of a route. Used by `decode::route`.

use crate::config::key::{Key, SubTable, Tree, key, section, table, tree};
use crate::config::kind::TEXT;
use crate::config::problem::Spanned;
use crate::config::table_reader::Table;
use dualgauge_model::subscription::SubscriptionSource;

section! {
    /// `subscription.notification` of a route.
    NOTIFICATION {
        /// Method of the notifications
        METHOD: Key<String> = key("method", TEXT).required();
        /// Places of `{id}` and `{event}` in their params
        PARAMS: Tree = tree("params");
    }
}

section! {
    /// `subscription.unsubscribe` of a route.
    UNSUBSCRIBE {
        /// Method of the call that ends the subscription
        UNSUBSCRIBE_METHOD: Key<String> = key("method", TEXT).required();
        /// Its params with `{id}`; `["{id}"]` if absent
        UNSUBSCRIBE_PARAMS: Tree = tree("params");
    }
}

section! {
    /// `subscription` of a route.
    pub(super) SUBSCRIPTION {
        /// Place of `{id}` in the result; the whole result if absent
        RESULT: Tree = tree("result");
        /// Notifications of the subscription
        OF_NOTIFICATION: SubTable = table("notification", &NOTIFICATION).required();
        /// Call that ends the subscription
        OF_UNSUBSCRIBE: SubTable = table("unsubscribe", &UNSUBSCRIBE).required();
    }
}

/// A method and params.
type MethodTree = (String, Option<dualgauge_patterns::pattern::SourceTree>);

/// Decodes `subscription` of a route.
pub(super) fn subscription(
    table: &mut Table<'_>,
    key: &SubTable,
) -> Option<Spanned<SubscriptionSource>> {
    let place = table.at(key.name);
    let source = table.table(key, |table| {
        let result = table.tree(&RESULT);
        let notification = table.table(&OF_NOTIFICATION, |table| {
            let (method, params) = (table.get(&METHOD), table.tree(&PARAMS));
            Some::<MethodTree>((method?.value, params))
        });
        let unsubscribe = table.table(&OF_UNSUBSCRIBE, |table| {
            let method = table.get(&UNSUBSCRIBE_METHOD);
            let params = table.tree(&UNSUBSCRIBE_PARAMS);
            Some::<MethodTree>((method?.value, params))
        });
        let (method, params) = notification?;
        let (unsubscribe, unsubscribe_params) = unsubscribe?;
        Some(SubscriptionSource {
            result,
            method,
            params,
            unsubscribe,
            unsubscribe_params,
        })
    })?;
    Some(place.map(|()| source))
}
