//! Deprecation of one side of a route: the headers `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`, and the
//! brownouts, windows in which its calls are refused so that its clients notice.

use std::collections::BTreeSet;

use http::header::LINK;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::time::Timestamp;
use dualgauge_patterns::side::Side;

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// The announced end of one side of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The deprecated side; its clients get the headers.
    pub side: Side,
    /// The start of the deprecation; this may lie in the future.
    pub since: Timestamp,
    /// The time when it is expected to stop answering; not before `since`.
    pub sunset: Option<Timestamp>,
    /// The absolute URL of a page about the deprecation.
    pub link: Option<String>,
    /// The URL of the replacement.
    pub successor: Option<String>,
    /// The windows in which its calls are refused: rising, disjoint.
    pub brownouts: Vec<Window>,
}

/// A period of time, with an exclusive end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first second in it.
    pub from: Timestamp,
    /// The first second after it.
    pub until: Timestamp,
}

impl Window {
    /// Returns true when a moment lies in the window.
    #[must_use]
    pub fn holds(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// A deprecated side of a route, with the headers of its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecated {
    announcement: Announcement,
    /// Set only where the upstream has not set the header itself.
    fields: Vec<(HeaderName, HeaderValue)>,
    /// Added to the links of the upstream.
    links: Vec<HeaderValue>,
}

impl Deprecated {
    /// Builds the headers of an announcement. Leaves out a link that is not valid in a header.
    ///
    /// ```
    /// use dualgauge_model::time::Timestamp;
    /// use dualgauge_model::lifecycle::{Announcement, Deprecated};
    /// use dualgauge_patterns::side::Side;
    /// use http::HeaderMap;
    /// let announcement = Announcement {
    ///     side: Side::Rest,
    ///     since: Timestamp::parse("2023-06-30T23:59:59Z").unwrap(),
    ///     sunset: None,
    ///     link: Some("https://api.example/deprecation".to_owned()),
    ///     successor: None,
    ///     brownouts: Vec::new(),
    /// };
    /// let mut headers = HeaderMap::new();
    /// Deprecated::new(announcement).announce(&mut headers);
    /// assert_eq!(headers["deprecation"], "@1688169599");
    /// assert_eq!(headers["link"], "<https://api.example/deprecation>; rel=\"deprecation\"");
    /// ```
    #[must_use]
    pub fn new(announcement: Announcement) -> Deprecated {
        let mut fields = Vec::new();
        // An sf-date of RFC 9651 §3.3.7.
        let since = format!("@{}", announcement.since.unix());
        fields.extend(HeaderValue::try_from(since).map(|value| (DEPRECATION, value)));
        if let Some(sunset) = announcement.sunset {
            fields.extend(HeaderValue::try_from(sunset.http_date()).map(|value| (SUNSET, value)));
        }
        let page = announcement.link.iter();
        let about = page
            .clone()
            .map(|link| (link, "deprecation"))
            // RFC 8594 §6: the page about a sunset has a relation of its own.
            .chain(
                page.filter(|_| announcement.sunset.is_some())
                    .map(|link| (link, "sunset")),
            )
            .chain(announcement.successor.iter().map(|link| (link, SUCCESSOR)));
        let links = about.filter_map(|(target, relation)| link(target, relation));
        Deprecated {
            links: links.collect(),
            fields,
            announcement,
        }
    }

    /// Returns the deprecated side.
    #[must_use]
    pub fn side(&self) -> Side {
        self.announcement.side
    }

    /// Returns the announcement.
    #[must_use]
    pub fn announcement(&self) -> &Announcement {
        &self.announcement
    }

    /// Returns the brownout that contains a moment.
    #[must_use]
    pub fn browned_out(&self, at: Timestamp) -> Option<Window> {
        let windows = &self.announcement.brownouts;
        let next = windows.partition_point(|window| window.until <= at);
        windows.get(next).filter(|window| window.holds(at)).copied()
    }

    /// Adds the headers to an answer. A header that the answer already has stays; links are added to its own.
    pub fn announce(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.fields {
            if !headers.contains_key(name) {
                headers.insert(name, value.clone());
            }
        }
        for link in &self.links {
            if !headers
                .get_all(LINK)
                .iter()
                .any(|existing| existing == link)
            {
                headers.append(LINK, link.clone());
            }
        }
    }
}

/// The relation of a replacement (RFC 5829 §3.3).
const SUCCESSOR: &str = "successor-version";

/// Renders a link (RFC 8288 §3). Returns `None` when its target is no URL.
fn link(target: &str, relation: &str) -> Option<HeaderValue> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"');
    if !target.bytes().all(plain) {
        return None;
    }
    HeaderValue::try_from(format!("<{target}>; rel=\"{relation}\"")).ok()
}

/// The brownouts in force at run time.
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
    /// Returns true when the brownouts of a route are in force.
    #[must_use]
    pub fn hold(&self, route: &str) -> bool {
        match self {
            Brownouts::On => true,
            Brownouts::OffFor(routes) => !routes.contains(route),
            Brownouts::Off => false,
        }
    }
}
