//! Subjects of client certificates, and the patterns that match them.
//!
//! Every pattern is compared with one field of its own type. Fields are never joined to one text first, because a
//! value could then look like two fields. A certificate is issued by a CA that the configuration trusts, but its
//! values are often chosen by the owner of the certificate.
//!
//! Used by `config`, `rollout`, `gateway` and `server`.

use core::net::IpAddr;

use super::Glob;
use crate::client_ip::Network;

/// The attribute types that have a name: those of RFC 4514 §3, and others that certificates often have.
const TYPES: &[(&str, &str)] = &[
    ("CN", "2.5.4.3"),
    ("SN", "2.5.4.4"),
    ("serialNumber", "2.5.4.5"),
    ("C", "2.5.4.6"),
    ("L", "2.5.4.7"),
    ("ST", "2.5.4.8"),
    ("STREET", "2.5.4.9"),
    ("O", "2.5.4.10"),
    ("OU", "2.5.4.11"),
    ("title", "2.5.4.12"),
    ("businessCategory", "2.5.4.15"),
    ("postalCode", "2.5.4.17"),
    ("GN", "2.5.4.42"),
    ("initials", "2.5.4.43"),
    ("dnQualifier", "2.5.4.46"),
    ("pseudonym", "2.5.4.65"),
    ("organizationIdentifier", "2.5.4.97"),
    ("UID", "0.9.2342.19200300.100.1.1"),
    ("DC", "0.9.2342.19200300.100.1.25"),
    ("emailAddress", "1.2.840.113549.1.9.1"),
];

/// The object identifier of the common name.
const COMMON_NAME: &str = "2.5.4.3";

/// The subject of a verified client certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    name: Vec<Vec<NameAttribute>>,
    alternatives: Vec<AlternativeName>,
}

/// An attribute of a distinguished name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameAttribute {
    /// The type, as a dotted object identifier.
    pub kind: String,
    /// The value; `None` if it is not text.
    pub value: Option<String>,
}

/// An alternative name of a subject (RFC 5280 §4.2.1.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlternativeName {
    /// A DNS name.
    Dns(String),
    /// An e-mail address.
    Email(String),
    /// A URI.
    Uri(String),
    /// An IP address.
    Address(IpAddr),
}

/// A pattern for one part of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectPattern {
    /// Matches the distinguished name as a whole.
    Name(NamePattern),
    /// Matches one of the common names in it.
    CommonName(Glob),
    /// Matches one of the DNS names.
    Dns(DnsPattern),
    /// Matches one of the e-mail addresses.
    Email(EmailPattern),
    /// Matches one of the URIs.
    Uri(UriPattern),
    /// Matches one of the IP addresses.
    Address(Network),
}

/// A pattern for DNS names; case-insensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsPattern(Glob);

/// A pattern for e-mail addresses: an optional local part, and the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmailPattern {
    local: Option<Glob>,
    host: Glob,
}

/// A pattern for URIs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UriPattern {
    /// Matches scheme, authority and the rest separately.
    Parts([Glob; 3]),
    /// Matches the URI as a whole; used if the pattern has no `://`.
    Whole(Glob),
}

/// A pattern for distinguished names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Vec<NameElement>);

/// An element of a [`NamePattern`].
#[derive(Debug, Clone, PartialEq, Eq)]
enum NameElement {
    /// Any number of parts, including none.
    Any,
    /// One part, as the type and the value of each of its attributes.
    Part(Vec<(String, Glob)>),
}

/// The reason why a text is not a [`NamePattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// A part without `=`.
    #[error(
        "has the part `{0}` without a type; write `CN=ios-*,O=Example`, and `*` for any other parts"
    )]
    NoType(String),
    /// An unknown type.
    #[error(
        "has the unknown type `{0}`; write one of RFC 4514, such as `CN`, `O` and `OU`, or a dotted object identifier"
    )]
    UnknownType(String),
    /// A part with two attributes of one type.
    #[error("has two values for `{0}` in one part; write `,` between parts")]
    TwiceInPart(String),
    /// A value in hexadecimal form.
    #[error("has a value that begins with `#`; write it as text, and a real `#` as `\\#`")]
    Hexadecimal,
    /// A character that must be escaped (RFC 4514 §2.4).
    #[error("has an unescaped `{0}` in a value; write `\\{0}`")]
    Unescaped(char),
    /// A `\` before a character that it cannot escape.
    #[error("has a `\\` that escapes nothing; write `\\\\` for the character itself")]
    Escape,
    /// A literal `*`.
    #[error("has an escaped `*`, which patterns cannot express; `*` stands for any text")]
    Star,
    /// Escaped bytes that are not UTF-8.
    #[error("has escaped bytes that are not UTF-8")]
    NotText,
}

impl Subject {
    /// Creates a subject with this name and these alternative names.
    ///
    /// The parts of the name are in the order of RFC 4514: the most specific one first. The case-insensitive parts of
    /// alternative names are stored in lower case (RFC 5280 §7.2, §7.4, §7.5).
    #[must_use]
    pub fn new(name: Vec<Vec<NameAttribute>>, alternatives: Vec<AlternativeName>) -> Subject {
        let alternatives = alternatives.into_iter().map(|name| match name {
            AlternativeName::Dns(name) => AlternativeName::Dns(name.to_ascii_lowercase()),
            AlternativeName::Email(address) => AlternativeName::Email(lower_host(&address)),
            AlternativeName::Uri(uri) => AlternativeName::Uri(match uri_parts(&uri) {
                Some([scheme, authority, rest]) => {
                    let scheme = scheme.to_ascii_lowercase();
                    format!("{scheme}://{}{rest}", lower_host(authority))
                }
                None => uri,
            }),
            AlternativeName::Address(address) => AlternativeName::Address(address.to_canonical()),
        });
        Subject {
            name,
            alternatives: alternatives.collect(),
        }
    }

    /// Returns true if a part of the subject matches the pattern.
    #[must_use]
    pub fn fits(&self, pattern: &SubjectPattern) -> bool {
        match pattern {
            SubjectPattern::Name(pattern) => pattern.fits(&self.name),
            SubjectPattern::CommonName(glob) => {
                let mut attributes = self.name.iter().flatten();
                attributes.any(|attribute| attribute.fits(COMMON_NAME, glob))
            }
            SubjectPattern::Dns(_)
            | SubjectPattern::Email(_)
            | SubjectPattern::Uri(_)
            | SubjectPattern::Address(_) => self.alternatives.iter().any(|name| name.fits(pattern)),
        }
    }
}

impl Subject {
    /// Returns the distinguished name in the form of RFC 4514 §2, in ASCII; `None` if it is empty or a value is not
    /// text.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.name {
            for (index, attribute) in part.iter().enumerate() {
                if !text.is_empty() {
                    text.push(if index == 0 { ',' } else { '+' });
                }
                let mut types = TYPES.iter();
                let known = types.find(|(_, kind)| *kind == attribute.kind);
                text.push_str(known.map_or(&*attribute.kind, |(name, _)| name));
                text.push('=');
                escape(attribute.value.as_deref()?, &mut text);
            }
        }
        (!text.is_empty()).then_some(text)
    }
}

impl NameAttribute {
    fn fits(&self, kind: &str, glob: &Glob) -> bool {
        let value = self.value.as_deref();
        self.kind == kind && value.is_some_and(|value| glob.fits(value))
    }
}

impl AlternativeName {
    fn fits(&self, pattern: &SubjectPattern) -> bool {
        match (self, pattern) {
            (AlternativeName::Dns(name), SubjectPattern::Dns(DnsPattern(glob))) => glob.fits(name),
            (AlternativeName::Email(address), SubjectPattern::Email(pattern)) => {
                pattern.fits(address)
            }
            (AlternativeName::Uri(uri), SubjectPattern::Uri(pattern)) => pattern.fits(uri),
            (AlternativeName::Address(address), SubjectPattern::Address(network)) => {
                network.contains(*address)
            }
            _ => false,
        }
    }
}

impl DnsPattern {
    /// Creates a pattern; every text is valid.
    #[must_use]
    pub fn new(pattern: &str) -> DnsPattern {
        DnsPattern(Glob::new(pattern.to_ascii_lowercase()))
    }
}

impl EmailPattern {
    /// Creates a pattern; every text is valid. Without `@` it matches the host, with any local part.
    #[must_use]
    pub fn new(pattern: &str) -> EmailPattern {
        let (local, host) = match pattern.rsplit_once('@') {
            Some((local, host)) => (Some(Glob::new(local)), host),
            None => (None, pattern),
        };
        EmailPattern {
            local,
            host: Glob::new(host.to_ascii_lowercase()),
        }
    }

    fn fits(&self, address: &str) -> bool {
        let Some((local, host)) = address.rsplit_once('@') else {
            return false;
        };
        let local_pattern = self.local.as_ref();
        local_pattern.is_none_or(|glob| glob.fits(local)) && self.host.fits(host)
    }
}

impl UriPattern {
    /// Creates a pattern; every text is valid.
    #[must_use]
    pub fn new(pattern: &str) -> UriPattern {
        let Some([scheme, authority, rest]) = uri_parts(pattern) else {
            return UriPattern::Whole(Glob::new(pattern));
        };
        // `spiffe://*` must match every URI of the scheme.
        let open = rest.is_empty() && authority.ends_with('*');
        UriPattern::Parts([
            Glob::new(scheme.to_ascii_lowercase()),
            Glob::new(lower_host(authority)),
            Glob::new(if open { "*" } else { rest }),
        ])
    }

    fn fits(&self, uri: &str) -> bool {
        match self {
            UriPattern::Whole(glob) => glob.fits(uri),
            UriPattern::Parts(globs) => uri_parts(uri).is_some_and(|parts| {
                let mut pairs = globs.iter().zip(parts);
                pairs.all(|(glob, part)| glob.fits(part))
            }),
        }
    }
}

impl NamePattern {
    /// Parses a distinguished name in the form of RFC 4514. A `*` in a value matches any text; a `*` in place of a
    /// part matches any number of parts.
    ///
    /// # Errors
    ///
    /// Returns a [`NameFault`] if the text is not such a name.
    ///
    /// ```
    /// use dualgauge_model::rollout::NamePattern;
    /// assert!(NamePattern::parse("CN=ios-*,O=Example").is_ok());
    /// assert!(NamePattern::parse("ios-*").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<NamePattern, NameFault> {
        let parts = split(text, ',').into_iter();
        let elements = parts.map(|part| match part.trim_matches(' ') {
            "*" => Ok(NameElement::Any),
            _ => NameElement::parse(part),
        });
        elements.collect::<Result<_, _>>().map(NamePattern)
    }

    /// Returns true if the parts of the name match the elements of the pattern, in order and completely.
    fn fits(&self, name: &[Vec<NameAttribute>]) -> bool {
        let NamePattern(elements) = self;
        let (mut position, mut index) = (0, 0);
        // Greedy matching with one backtracking point, as for globs: the element after the last `*`, and the part from
        // which it is tried next.
        let mut backtrack: Option<(usize, usize)> = None;
        while let Some(part) = name.get(index) {
            match elements.get(position) {
                Some(NameElement::Any) => {
                    position += 1;
                    backtrack = Some((position, index));
                }
                Some(element) if element.fits(part) => {
                    position += 1;
                    index += 1;
                }
                _ => {
                    let Some((after_any, tried)) = backtrack else {
                        return false;
                    };
                    position = after_any;
                    index = tried + 1;
                    backtrack = Some((position, index));
                }
            }
        }
        let mut left = elements.iter().skip(position);
        left.all(|element| *element == NameElement::Any)
    }
}

impl NameElement {
    fn parse(part: &str) -> Result<NameElement, NameFault> {
        let mut attributes: Vec<(String, Glob)> = Vec::new();
        for attribute in split(part, '+') {
            let Some((name, value)) = attribute.split_once('=') else {
                return Err(NameFault::NoType(attribute.trim().to_owned()));
            };
            let name = name.trim_matches(' ');
            let kind = object_identifier_of(name)
                .ok_or_else(|| NameFault::UnknownType(name.to_owned()))?;
            if attributes.iter().any(|(known, _)| *known == kind) {
                return Err(NameFault::TwiceInPart(name.to_owned()));
            }
            attributes.push((kind, Glob::new(unescaped(value)?)));
        }
        Ok(NameElement::Part(attributes))
    }

    /// Returns true if the part has exactly the attributes of the pattern. The pattern never has two attributes of one
    /// type, so no attribute counts twice.
    fn fits(&self, part: &[NameAttribute]) -> bool {
        let NameElement::Part(attributes) = self else {
            return true;
        };
        let has = |(kind, glob): &(String, Glob)| part.iter().any(|own| own.fits(kind, glob));
        attributes.len() == part.len() && attributes.iter().all(has)
    }
}

/// Returns the object identifier for the name of a type, case-insensitively, or for an object identifier itself.
fn object_identifier_of(name: &str) -> Option<String> {
    let mut types = TYPES.iter();
    if let Some((_, kind)) = types.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Some((*kind).to_owned());
    }
    let number = |arc: &str| {
        let digits = !arc.is_empty() && arc.bytes().all(|byte| byte.is_ascii_digit());
        digits && (arc == "0" || !arc.starts_with('0'))
    };
    (name.contains('.') && name.split('.').all(number)).then(|| name.to_owned())
}

/// Splits a text at each separator that is not escaped with `\`.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut escaped = false;
    text.split(|character| {
        let ends = character == separator && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    })
    .collect()
}

/// Decodes a value (RFC 4514 §3) to the text of a glob, without unescaped blanks at either end.
fn unescaped(value: &str) -> Result<String, NameFault> {
    let value = value.trim_start_matches(' ');
    if value.starts_with('#') {
        return Err(NameFault::Hexadecimal);
    }
    let mut bytes = Vec::with_capacity(value.len());
    // The number of bytes that stay even if only blanks follow.
    let mut least_length = 0;
    let mut rest = value.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => {
                bytes.push(escaped_byte(&mut rest)?);
                least_length = bytes.len();
            }
            '"' | ';' | '<' | '>' => return Err(NameFault::Unescaped(character)),
            _ => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                if character != ' ' {
                    least_length = bytes.len();
                }
            }
        }
    }
    bytes.truncate(least_length);
    String::from_utf8(bytes).map_err(|_| NameFault::NotText)
}

/// Writes a value (RFC 4514 §2.4). Characters outside printable ASCII are written in hexadecimal digits, so that the
/// text is valid in a header.
fn escape(value: &str, text: &mut String) {
    let last = value.len().saturating_sub(1);
    for (index, byte) in value.bytes().enumerate() {
        let at_end = index == 0 || index == last;
        match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'=' | b'>' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b'#' if index == 0 => text.push_str("\\#"),
            b' ' if at_end => text.push_str("\\ "),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\{byte:02X}")),
        }
    }
}

/// Parses the text after a `\`: a special character, or two hexadecimal digits.
fn escaped_byte(rest: &mut core::str::Chars<'_>) -> Result<u8, NameFault> {
    let first = rest.next().ok_or(NameFault::Escape)?;
    let byte = match first {
        ' ' | '"' | '#' | '+' | ',' | ';' | '<' | '=' | '>' | '\\' | '*' => {
            u8::try_from(first).map_err(|_| NameFault::Escape)?
        }
        _ => {
            let high = first.to_digit(16).ok_or(NameFault::Escape)?;
            let low = rest.next().and_then(|digit| digit.to_digit(16));
            let byte = high * 16 + low.ok_or(NameFault::Escape)?;
            u8::try_from(byte).map_err(|_| NameFault::Escape)?
        }
    };
    if byte == b'*' {
        return Err(NameFault::Star);
    }
    Ok(byte)
}

/// Returns scheme, authority and the rest of a URI that has an authority.
fn uri_parts(uri: &str) -> Option<[&str; 3]> {
    let (scheme, rest) = uri.split_once("://")?;
    // Without a valid scheme there is no authority: `urn:a://b`.
    if scheme.contains([':', '/', '?', '#']) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    Some([scheme, authority, rest])
}

/// Returns the text with its host in lower case: the part after the last `@`, or all of it.
fn lower_host(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((user, host)) => format!("{user}@{}", host.to_ascii_lowercase()),
        None => text.to_ascii_lowercase(),
    }
}
