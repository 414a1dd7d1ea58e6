//! What clients of a deprecated side are told: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `HoleLink`; and the
//! windows in which their calls are refused, so that nobody overlooks it.

use std::collections::BTreeSet;

use http::header::LINK;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::domain::side::Side;
use crate::domain::time::Timestamp;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// What is said of the end of one side of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The side whose clients are told.
    pub side: Side,
    /// Since when it is deprecated; this may lie in the future.
    pub since: Timestamp,
    /// When it is expected to stop answering; not before `since`.
    pub sunset: Option<Timestamp>,
    /// A page about it, an absolute URL.
    pub link: Option<String>,
    /// What to call instead, an address.
    pub successor: Option<String>,
    /// When its calls are refused: rising, none within another.
    pub brownouts: Vec<Window>,
}

/// A time with its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first second in it.
    pub from: Timestamp,
    /// The first second after it.
    pub until: Timestamp,
}

impl Window {
    /// Whether a moment lies in it.
    #[must_use]
    pub fn holds(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// A deprecated side of a route, with the headers of its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecated {
    said: Announcement,
    /// Said once: an upstream's own are left alone.
    fields: Vec<(HeaderName, HeaderValue)>,
    /// Said beside those of the upstream.
    links: Vec<HeaderValue>,
}

impl Deprecated {
    /// Makes the headers of an announcement. A link that no header can bear is left out.
    ///
    /// ```
    /// use dualgauge::domain::calendar::Moment;
    /// use dualgauge::domain::lifecycle::{Announcement, Deprecated};
    /// use dualgauge::domain::side::Side;
    /// use http::HeaderMap;
    /// let said = Announcement {
    ///     side: Side::Rest,
    ///     since: Moment::parse("2023-06-30T23:59:59Z").unwrap(),
    ///     sunset: None,
    ///     link: Some("https://api.example/deprecation".to_owned()),
    ///     successor: None,
    ///     brownouts: Vec::new(),
    /// };
    /// let mut headers = HeaderMap::new();
    /// Deprecated::new(said).announce(&mut headers);
    /// assert_eq!(headers["deprecation"], "@1688169599");
    /// assert_eq!(headers["link"], "<https://api.example/deprecation>; rel=\"deprecation\"");
    /// ```
    #[must_use]
    pub fn new(said: Announcement) -> Deprecated {
        let mut fields = Vec::new();
        // An sf-date of RFC 9651 §3.3.7.
        let since = format!("@{}", said.since.unix());
        fields.extend(HeaderValue::try_from(since).map(|value| (DEPRECATION, value)));
        if let Some(sunset) = said.sunset {
            fields.extend(HeaderValue::try_from(sunset.http_date()).map(|value| (SUNSET, value)));
        }
        let page = said.link.iter();
        let about = page
            .clone()
            .map(|link| (link, "deprecation"))
            // RFC 8594 §6: the page about the end has a relation of its own.
            .chain(
                page.filter(|_| said.sunset.is_some())
                    .map(|link| (link, "sunset")),
            )
            .chain(said.successor.iter().map(|link| (link, SUCCESSOR)));
        let links = about.filter_map(|(target, relation)| link(target, relation));
        Deprecated {
            links: links.collect(),
            fields,
            said,
        }
    }

    /// The side whose clients are told.
    #[must_use]
    pub fn side(&self) -> Side {
        self.said.side
    }

    /// What is announced.
    #[must_use]
    pub fn said(&self) -> &Announcement {
        &self.said
    }

    /// The window in which a moment lies.
    #[must_use]
    pub fn browned_out(&self, at: Timestamp) -> Option<Window> {
        let windows = &self.said.brownouts;
        let next = windows.partition_point(|window| window.until <= at);
        windows.get(next).filter(|window| window.holds(at)).copied()
    }

    /// Adds the headers to an answer. What the answer says of its own end holds; links are added to its own.
    pub fn announce(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.fields {
            if !headers.contains_key(name) {
                headers.insert(name, value.clone());
            }
        }
        for link in &self.links {
            if !headers.get_all(LINK).iter().any(|said| said == link) {
                headers.append(LINK, link.clone());
            }
        }
    }
}

/// The relation of what to call instead (RFC 5829 §3.3).
const SUCCESSOR: &str = "successor-version";

/// A link (RFC 8288 §3), unless its target is no URL.
fn link(target: &str, relation: &str) -> Option<HeaderValue> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"');
    if !target.bytes().all(plain) {
        return None;
    }
    HeaderValue::try_from(format!("<{target}>; rel=\"{relation}\"")).ok()
}

/// Which brownouts hold at run time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Brownouts {
    /// All that were announced.
    #[default]
    On,
    /// All but those of these routes.
    OffFor(BTreeSet<String>),
    /// None.
    Off,
}

impl Brownouts {
    /// Whether those of a route hold.
    #[must_use]
    pub fn hold(&self, route: &str) -> bool {
        match self {
            Brownouts::On => true,
            Brownouts::OffFor(routes) => !routes.contains(route),
            Brownouts::Off => false,
        }
    }
}
