//! The base path of a REST server: the path of its URL precedes the path of every request.
//!
//! Used by `explain`, `gateway` and `upstream`.

use std::borrow::Cow;

use http::header::{CONTENT_LOCATION, LOCATION};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Uri};

use super::upstream::{Transport, UpstreamPlan};
use dualgauge_patterns::side::Side;

impl UpstreamPlan {
    /// Returns the base path, without a slash at its end; `None` for a server without one.
    #[must_use]
    pub fn base_path(&self) -> Option<&str> {
        let path = self.path.path().trim_end_matches('/');
        let has_base = self.side == Side::Rest && self.transport == Transport::Http;
        (has_base && !path.is_empty()).then_some(path)
    }

    /// Returns a target with the base path before it. `*` (RFC 9112 §3.2.4) stays as it is.
    #[must_use]
    pub fn with_base<'t>(&self, target: &'t str) -> Cow<'t, str> {
        match self.base_path() {
            Some(base) if target.starts_with('/') => Cow::Owned(format!("{base}{target}")),
            Some(_) | None => Cow::Borrowed(target),
        }
    }

    /// Does the same for a parsed target.
    #[must_use]
    pub fn uri_with_base(&self, target: Uri) -> Uri {
        let (Some(_), Some(path)) = (self.base_path(), target.path_and_query()) else {
            return target;
        };
        // Two valid paths make a valid one.
        let whole = PathAndQuery::try_from(self.with_base(path.as_str()).as_ref());
        whole.map_or(target, Uri::from)
    }

    /// Removes the base path from the locations in a response, so that the client finds them at the proxy. Locations
    /// with a host, and relative ones, stay as they are.
    pub fn strip_base(&self, headers: &mut HeaderMap) {
        let Some(base) = self.base_path() else {
            return;
        };
        for name in [LOCATION, CONTENT_LOCATION] {
            let value = headers.get(&name).and_then(|value| value.to_str().ok());
            let rest = value.and_then(|value| value.strip_prefix(base));
            let stripped = match rest {
                Some(rest) if rest.starts_with('/') && !rest.starts_with("//") => rest.to_owned(),
                Some(rest) if rest.is_empty() || rest.starts_with(['?', '#']) => format!("/{rest}"),
                Some(_) | None => continue,
            };
            if let Ok(stripped) = HeaderValue::try_from(stripped) {
                headers.insert(name, stripped);
            }
        }
    }
}
