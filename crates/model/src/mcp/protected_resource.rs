//! Protected resource metadata (RFC 9728) of an MCP server, and the challenges that name it (MCP, "Authorization").
//!
//! A client accepts metadata only if `resource` is the URL that it uses (RFC 9728 §3.3), which is the proxy's. With
//! [`PublicUrl`], the metadata and the challenges of the server name the proxy.
//!
//! Laws: nothing else in a document or a challenge changes; what cannot be read stays as it is.
//!
//! Used by `config`, `model` and `gateway`.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use http::{HeaderValue, Uri};

use crate::route::without_slash;
use dualgauge_patterns::json::Json;

/// The path of the metadata of an origin. The path of a resource follows it (RFC 9728 §3.1).
pub const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The parameter of a challenge with the URL of the metadata (RFC 9728 §5.1).
const PARAMETER: &str = "resource_metadata";

/// A message that names the protected resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceNaming {
    /// Metadata that now names the proxy.
    MetadataRewritten,
    /// Metadata that was sent unchanged.
    MetadataUnchanged,
    /// A challenge that now names the proxy.
    ChallengeRewritten,
}

impl ResourceNaming {
    /// All values, in the order of their numbers.
    pub const ALL: [ResourceNaming; 3] = [
        ResourceNaming::MetadataRewritten,
        ResourceNaming::MetadataUnchanged,
        ResourceNaming::ChallengeRewritten,
    ];

    /// Returns the word of metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ResourceNaming::MetadataRewritten => "metadata_rewritten",
            ResourceNaming::MetadataUnchanged => "metadata_unchanged",
            ResourceNaming::ChallengeRewritten => "challenge_rewritten",
        }
    }
}

/// The URL at which clients reach the proxy: an origin, and a path before those of the proxy if another proxy in front
/// removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    /// Begins with a slash unless empty, and does not end with one.
    base: String,
}

/// The reason why a URL cannot be the public one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicUrlFault {
    /// Another scheme, or a URL without a host.
    #[error("it is not an absolute `http://` or `https://` URL")]
    NotAbsolute,
    /// A user or a password before the host.
    #[error("it has a user name or a password")]
    UserInfo,
    /// A query.
    #[error("it has a query")]
    Query,
}

impl PublicUrl {
    /// Returns the URL in the form that resource identifiers are written in.
    ///
    /// # Errors
    /// [`PublicUrlFault`] if it cannot identify a resource.
    pub fn from_uri(uri: &Uri) -> Result<PublicUrl, PublicUrlFault> {
        let (scheme, authority) = uri
            .scheme_str()
            .zip(uri.authority())
            .filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
            .ok_or(PublicUrlFault::NotAbsolute)?;
        if authority.as_str().contains('@') {
            return Err(PublicUrlFault::UserInfo);
        }
        if uri.query().is_some() {
            return Err(PublicUrlFault::Query);
        }
        Ok(PublicUrl {
            origin: format!("{scheme}://{}", authority.as_str().to_ascii_lowercase()),
            base: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns the identifier of the resource at a path of the proxy; an empty path names the proxy itself.
    #[must_use]
    pub fn resource(&self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        format!("{}{}{path}", self.origin, self.base)
    }

    /// Returns a path of the proxy as clients see it.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the URL of the metadata of the resource at a path of the proxy.
    #[must_use]
    pub fn metadata(&self, path: &str) -> String {
        let path = path.trim_end_matches('/');
        format!("{}{METADATA_PATH}{}{path}", self.origin, self.base)
    }

    /// Removes the base from the path of a resource, which clients write after [`METADATA_PATH`].
    fn without_base<'r>(&self, resource: &'r str) -> &'r str {
        let rest = resource.strip_prefix(&self.base);
        rest.filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .unwrap_or(resource)
    }
}

/// Returns the path of the resource whose metadata a path names: empty for the origin, without a slash at the end.
#[must_use]
pub fn metadata_resource<'p>(path: &'p str, public: Option<&PublicUrl>) -> Option<&'p str> {
    let resource = path.strip_prefix(METADATA_PATH)?;
    if !resource.is_empty() && !resource.starts_with('/') {
        return None;
    }
    let resource = public.map_or(resource, |public| public.without_base(resource));
    Some(match resource {
        "" | "/" => "",
        resource => without_slash(resource),
    })
}

/// Returns metadata whose `resource` is this URL; `None` if the document is no object with one `resource`.
#[must_use]
pub fn name_resource(document: &Bytes, url: &str, depth: u16) -> Option<Bytes> {
    let document = Json::parse(document.clone(), depth).ok()?;
    let members = document.open().ok()?;
    let resource = members.iter().find(|member| member.name == "resource")?;
    let text = document.as_bytes();
    let (before, after) = (&text[..resource.value.start], &text[resource.value.end..]);
    Some(
        [before, Json::string(url).as_bytes(), after]
            .concat()
            .into(),
    )
}

/// Returns a challenge whose `resource_metadata` is this URL; `None` if it names no metadata at a well-known path. A
/// server may keep its metadata elsewhere, where the proxy does not serve them.
#[must_use]
pub fn name_metadata(challenge: &HeaderValue, url: &str) -> Option<HeaderValue> {
    let text = challenge.to_str().ok()?;
    let value = parameter(text, PARAMETER)?;
    if !unquoted(&text[value.clone()]).contains(METADATA_PATH) {
        return None;
    }
    let (before, after) = (&text[..value.start], &text[value.end..]);
    HeaderValue::try_from(format!("{before}\"{url}\"{after}")).ok()
}

/// Returns the range of the value of the first parameter of this name, with its quotes (RFC 9110 §11.2).
fn parameter(text: &str, wanted: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = token_end(bytes, at);
        if end == at {
            // A quoted string outside of a parameter has no meaning, but it may contain anything.
            at = if bytes[at] == b'"' {
                quoted_end(bytes, at)
            } else {
                at + 1
            };
            continue;
        }
        let name = &text[at..end];
        let equals = skip_blanks(bytes, end);
        if bytes.get(equals) != Some(&b'=') {
            at = end;
            continue;
        }
        let start = skip_blanks(bytes, equals + 1);
        let value = match bytes.get(start) {
            Some(b'"') => start..quoted_end(bytes, start),
            _ => start..token_end(bytes, start),
        };
        if name.eq_ignore_ascii_case(wanted) && !value.is_empty() {
            return Some(value);
        }
        at = value.end.max(equals + 1);
    }
    None
}

/// Returns the end of the token that begins here (RFC 9110 §5.6.2). `/` and `:` are no token characters, but some
/// servers write URLs without quotes.
fn token_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes[from..].iter();
    let length = rest
        .take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b',' | b'=' | b'"'))
        .count();
    from + length
}

/// Returns the end of the quoted string that begins here (RFC 9110 §5.6.4), or that of the text.
fn quoted_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let rest = bytes[from..].iter();
    from + rest.take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn unquoted(value: &str) -> Cow<'_, str> {
    match value.contains(['"', '\\']) {
        true => value.replace(['"', '\\'], "").into(),
        false => value.into(),
    }
}

/// Reads any bytes as metadata and as a challenge, and checks the laws of this module. For the fuzz target and its corpus.
#[doc(hidden)]
pub fn check_any_metadata(data: &[u8]) {
    const URL: &str = "https://gateway.example/mcp";
    let document = Bytes::copy_from_slice(data);
    if let Some(named) = name_resource(&document, URL, 32) {
        let again = name_resource(&named, URL, 32);
        assert_eq!(
            again.as_ref(),
            Some(&named),
            "a document that names the proxy stays as it is"
        );
    }
    let Ok(challenge) = HeaderValue::from_bytes(data) else {
        return;
    };
    let metadata = format!("https://gateway.example{METADATA_PATH}/mcp");
    if let Some(named) = name_metadata(&challenge, &metadata) {
        let again = name_metadata(&named, &metadata);
        assert_eq!(
            again.as_ref(),
            Some(&named),
            "a challenge that names the proxy stays as it is"
        );
    }
    if let Ok(path) = std::str::from_utf8(data) {
        let resource = metadata_resource(path, None);
        assert!(resource.is_none_or(|resource| path.contains(resource)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> Result<PublicUrl, PublicUrlFault> {
        PublicUrl::from_uri(&text.parse().unwrap())
    }

    #[test]
    fn a_public_url_names_resources_and_their_metadata() {
        let plain = public("https://Gateway.example/").unwrap();
        assert_eq!(plain.resource("/mcp"), "https://gateway.example/mcp");
        assert_eq!(plain.resource(""), "https://gateway.example");
        let metadata = "https://gateway.example/.well-known/oauth-protected-resource/mcp";
        assert_eq!(plain.metadata("/mcp"), metadata);
        let based = public("https://gateway.example:8443/tools/").unwrap();
        assert_eq!(
            based.resource("/mcp"),
            "https://gateway.example:8443/tools/mcp"
        );
        let metadata =
            "https://gateway.example:8443/.well-known/oauth-protected-resource/tools/mcp";
        assert_eq!(based.metadata("/mcp"), metadata);
    }

    #[test]
    fn urls_that_identify_no_resource_are_refused() {
        assert_eq!(public("/mcp"), Err(PublicUrlFault::NotAbsolute));
        assert_eq!(
            public("ws://gateway.example"),
            Err(PublicUrlFault::NotAbsolute)
        );
        assert_eq!(
            public("https://me:x@gateway.example"),
            Err(PublicUrlFault::UserInfo)
        );
        assert_eq!(
            public("https://gateway.example/?a"),
            Err(PublicUrlFault::Query)
        );
    }

    #[test]
    fn a_well_known_path_names_a_resource() {
        let resource = |path| metadata_resource(path, None);
        assert_eq!(resource(METADATA_PATH), Some(""));
        assert_eq!(resource("/.well-known/oauth-protected-resource/"), Some(""));
        assert_eq!(
            resource("/.well-known/oauth-protected-resource/mcp"),
            Some("/mcp")
        );
        assert_eq!(
            resource("/.well-known/oauth-protected-resource/mcp/"),
            Some("/mcp")
        );
        assert_eq!(resource("/.well-known/oauth-protected-resources"), None);
        assert_eq!(resource("/.well-known/oauth-authorization-server"), None);
        let based = public("https://gateway.example/tools").unwrap();
        let path = "/.well-known/oauth-protected-resource/tools/mcp";
        assert_eq!(metadata_resource(path, Some(&based)), Some("/mcp"));
        let path = "/.well-known/oauth-protected-resource/toolsmith";
        assert_eq!(metadata_resource(path, Some(&based)), Some("/toolsmith"));
    }

    #[test]
    fn metadata_keep_everything_but_the_resource() {
        let named = |document: &'static str| {
            let named = name_resource(&Bytes::from_static(document.as_bytes()), "https://p/mcp", 8);
            named.map(|named| String::from_utf8(named.to_vec()).unwrap())
        };
        assert_eq!(
            named(r#"{ "resource" : "http://10.0.0.5:8000/mcp","authorization_servers":["https://as"], "x":1.0 }"#),
            Some(r#"{ "resource" : "https://p/mcp","authorization_servers":["https://as"], "x":1.0 }"#.to_owned())
        );
        for other in [
            "",
            "[]",
            "{}",
            r#"{"resource":1,"resource":2}"#,
            "not found",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn challenges_keep_everything_but_the_metadata() {
        let named = |challenge: &str| {
            let challenge = HeaderValue::from_str(challenge).unwrap();
            let named = name_metadata(&challenge, "https://p/m");
            named.map(|named| named.to_str().unwrap().to_owned())
        };
        let old = "http://10.0.0.5:8000/.well-known/oauth-protected-resource/mcp";
        for (before, after) in [
            (
                format!(r#"Bearer error="invalid_token", resource_metadata="{old}""#),
                r#"Bearer error="invalid_token", resource_metadata="https://p/m""#,
            ),
            (
                format!(
                    r#"Basic realm="resource_metadata=1", Bearer Resource_Metadata = "{old}", scope="a b""#
                ),
                r#"Basic realm="resource_metadata=1", Bearer Resource_Metadata = "https://p/m", scope="a b""#,
            ),
            (
                format!("Bearer resource_metadata={old}"),
                r#"Bearer resource_metadata="https://p/m""#,
            ),
            (
                format!(r#"Negotiate abc==, Bearer realm="a\"b", resource_metadata="{old}""#),
                r#"Negotiate abc==, Bearer realm="a\"b", resource_metadata="https://p/m""#,
            ),
        ] {
            assert_eq!(named(&before).as_deref(), Some(after), "{before}");
        }
        for other in [
            "Bearer",
            "Bearer realm=x",
            r#"Bearer realm="resource_metadata=/.well-known/oauth-protected-resource""#,
            r#"Bearer resource_metadata="https://elsewhere/metadata.json""#,
            "Bearer resource_metadata=",
            r#"Bearer resource_metadata=""#,
        ] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
