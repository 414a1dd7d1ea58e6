//! Agent cards of A2A servers (A2A 1.0 §4.4), as clients of the proxy read them.
//!
//! A card lists the interfaces of an agent: each has a URL and a binding. With `rpc.agent_card` and `listen.public_url`,
//! those of the JSON-RPC and HTTP+JSON bindings name the proxy, which has both.
//!
//! With `rpc.agent_card_versions`, a card also gets the members of another version of A2A.
//!
//! Laws: a card that names the proxy stays as it is; members that name no interface keep their bytes, except for
//! signatures, which are valid for the server's card only, and for skills and security schemes with members of another
//! version.
//!
//! Used by `explain` and `gateway`.

mod versions;

use std::collections::BTreeSet;

use bytes::Bytes;
use http::Method;

use crate::card_plan::A2aVersion;
use crate::plan::Plan;
use crate::routing::RequestHead;
use dualgauge_patterns::json::{Json, JsonKind, OpenMember};

/// A served agent card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardNaming {
    /// A card that now names the proxy.
    Rewritten,
    /// A document that is no card, and was sent unchanged.
    Unchanged,
}

impl CardNaming {
    /// All values, in the order of their numbers.
    pub const ALL: [CardNaming; 2] = [CardNaming::Rewritten, CardNaming::Unchanged];

    /// Returns the word of metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CardNaming::Rewritten => "rewritten",
            CardNaming::Unchanged => "unchanged",
        }
    }
}

/// The URLs of the proxy, one for each binding that it translates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyInterfaces {
    /// The endpoint of JSON-RPC.
    pub rpc: String,
    /// The base of the paths of HTTP+JSON.
    pub rest: String,
    /// The versions whose clients find the proxy in any card.
    pub versions: Vec<A2aVersion>,
}

/// A binding that the proxy has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    JsonRpc,
    HttpJson,
}

/// The member of an interface that names its binding in A2A 1.0.
const BINDING: &str = "protocolBinding";

/// The same in A2A 0.3.
const FORMER_BINDING: &str = "transport";

impl Binding {
    fn read(word: &str) -> Option<Binding> {
        match word {
            "JSONRPC" => Some(Binding::JsonRpc),
            "HTTP+JSON" => Some(Binding::HttpJson),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Binding::JsonRpc => "JSONRPC",
            Binding::HttpJson => "HTTP+JSON",
        }
    }

    const fn other(self) -> Binding {
        match self {
            Binding::JsonRpc => Binding::HttpJson,
            Binding::HttpJson => Binding::JsonRpc,
        }
    }
}

/// Returns the URLs of the proxy if the request asks for the agent card; `None` for other requests, and if the plan has
/// no such URLs.
#[must_use]
pub fn requested_card(plan: &Plan, head: RequestHead<'_>) -> Option<ProxyInterfaces> {
    let card = plan.face.agent_card.as_ref()?;
    let public = plan.public_url.as_ref()?;
    if head.uri.path() != card.path || !matches!(*head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let rpc_path = plan.face.paths.first().map_or("", String::as_str);
    Some(ProxyInterfaces {
        rpc: public.resource(rpc_path),
        rest: public.resource(""),
        versions: card.versions.clone(),
    })
}

impl ProxyInterfaces {
    /// Returns a card whose interfaces name the proxy; `None` if the document is no card.
    #[must_use]
    pub fn name_in(&self, document: &Bytes, depth: u16) -> Option<Bytes> {
        let card = Json::parse(document.clone(), depth).ok()?;
        let members = card.open().ok()?;
        let interfaces = ["supportedInterfaces", "url"];
        if !interfaces.iter().any(|name| card.has(name)) {
            return None;
        }
        let mut parts = self.named_members(&card, &members);
        let named = enclosed(b'{', &parts, b'}');
        if self.versions.is_empty() {
            return Some(named);
        }
        parts.extend(self.members_for_versions(&members, &card));
        let whole = enclosed(b'{', &parts, b'}');
        let whole = self.with_schemes(&Json::written(whole));
        // Members of the other version may be nested deeper.
        let is_readable = Json::parse(whole.clone(), depth).is_ok();
        Some(if is_readable { whole } else { named })
    }

    /// Returns the members of a card, with the URLs of the proxy.
    fn named_members(&self, card: &Json, members: &[OpenMember<'_>]) -> Vec<Bytes> {
        let preferred = text_member(card, "preferredTransport");
        let preferred = preferred.map_or(Some(Binding::JsonRpc), |word| Binding::read(&word));
        let mut named: Vec<Bytes> = Vec::new();
        for member in members {
            let value = card.piece(member.value.clone());
            let value = match &*member.name {
                "signatures" => continue,
                "supportedInterfaces" => self.interfaces(&value),
                "additionalInterfaces" => self.renamed_list(&value),
                "url" => preferred.map_or(value, |binding| Json::string(self.url(binding))),
                _ => value,
            };
            let before = &card.as_bytes()[member.whole.start..member.value.start];
            named.push([before, value.as_bytes()].concat().into());
        }
        named
    }

    fn url(&self, binding: Binding) -> &str {
        match binding {
            Binding::JsonRpc => &self.rpc,
            Binding::HttpJson => &self.rest,
        }
    }

    /// Names the proxy in the interfaces of A2A 1.0, and adds the binding that the server does not have to those of
    /// version 1.
    fn interfaces(&self, list: &Json) -> Json {
        if list.kind() != JsonKind::Array {
            return list.clone();
        }
        let mut known = BTreeSet::new();
        let mut written: Vec<Bytes> = Vec::new();
        let mut added: Vec<(Binding, Json)> = Vec::new();
        for range in list.elements() {
            let element = list.piece(range);
            let Some(binding) = binding_of(&element, BINDING) else {
                written.push(element.into_bytes());
                continue;
            };
            if known.insert(identity(binding, &element)) {
                written.push(self.renamed(&element, binding, BINDING).into_bytes());
            }
            if version(&element).is_some_and(|version| version.starts_with("1.")) {
                added.push((binding.other(), element));
            }
        }
        for (binding, element) in added {
            if known.insert(identity(binding, &element)) {
                written.push(self.renamed(&element, binding, BINDING).into_bytes());
            }
        }
        Json::written(enclosed(b'[', &written, b']'))
    }

    /// Names the proxy in the interfaces of A2A 0.3.
    fn renamed_list(&self, list: &Json) -> Json {
        if list.kind() != JsonKind::Array {
            return list.clone();
        }
        let renamed = list.elements().map(|range| {
            let element = list.piece(range);
            match binding_of(&element, FORMER_BINDING) {
                Some(binding) => self.renamed(&element, binding, FORMER_BINDING).into_bytes(),
                None => element.into_bytes(),
            }
        });
        Json::written(enclosed(b'[', &renamed.collect::<Vec<_>>(), b']'))
    }

    /// Returns an interface with this binding, at the proxy.
    fn renamed(&self, interface: &Json, binding: Binding, binding_member: &str) -> Json {
        let Ok(members) = interface.open() else {
            return interface.clone();
        };
        let text = interface.as_bytes();
        let mut out = Vec::with_capacity(text.len());
        let mut copied = 0;
        for member in &members {
            let value = match &*member.name {
                "url" => self.url(binding),
                name if name == binding_member => binding.as_str(),
                _ => continue,
            };
            out.extend_from_slice(&text[copied..member.value.start]);
            out.extend_from_slice(Json::string(value).as_bytes());
            copied = member.value.end;
        }
        out.extend_from_slice(&text[copied..]);
        Json::written(out)
    }
}

/// Returns the binding of an interface, if the proxy has it. An interface with repeated members has none.
fn binding_of(interface: &Json, binding_member: &str) -> Option<Binding> {
    interface.open().ok()?;
    Binding::read(&text_member(interface, binding_member)?)
}

fn version(interface: &Json) -> Option<String> {
    text_member(interface, "protocolVersion")
}

/// Returns what distinguishes interfaces of the proxy: binding, version and tenant.
fn identity(binding: Binding, interface: &Json) -> (Binding, Option<String>, Option<String>) {
    let tenant = text_member(interface, "tenant").filter(|tenant| !tenant.is_empty());
    (binding, version(interface), tenant)
}

fn text_member(object: &Json, name: &str) -> Option<String> {
    object.member(name)?.text()?.ok()
}

/// Joins the parts of an object or a list.
fn enclosed(open: u8, parts: &[Bytes], close: u8) -> Bytes {
    let mut out = vec![open];
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(part);
    }
    out.push(close);
    out.into()
}

/// Checks the laws on any bytes. Fuzz targets and the test of their corpus call it.
///
/// # Panics
/// If a law does not hold.
pub fn check_any_card(data: &[u8]) {
    let (former, current) = (A2aVersion::V0_3, A2aVersion::V1_0);
    for versions in [vec![], vec![former], vec![current], vec![former, current]] {
        let interfaces = ProxyInterfaces {
            rpc: "https://gateway.example/rpc".to_owned(),
            rest: "https://gateway.example".to_owned(),
            versions,
        };
        if let Some(named) = interfaces.name_in(&Bytes::copy_from_slice(data), 32) {
            let again = interfaces.name_in(&named, 32);
            assert_eq!(
                again.as_ref(),
                Some(&named),
                "a card that names the proxy stays as it is"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(card: &str) -> Option<String> {
        named_for(&[], card)
    }

    fn named_for(versions: &[A2aVersion], card: &str) -> Option<String> {
        let interfaces = ProxyInterfaces {
            rpc: "https://p.example/rpc".to_owned(),
            rest: "https://p.example".to_owned(),
            versions: versions.to_vec(),
        };
        let named = interfaces.name_in(&Bytes::copy_from_slice(card.as_bytes()), 32)?;
        check_any_card(card.as_bytes());
        Some(String::from_utf8(named.to_vec()).unwrap())
    }

    #[test]
    fn a_card_gets_both_bindings_at_the_proxy() {
        let card = r#"{"name":"A","supportedInterfaces":[{"url":"http://10.0.0.5/","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"version":"1"}"#;
        let expected = r#"{"name":"A","supportedInterfaces":[{"url":"https://p.example/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"https://p.example","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}],"version":"1"}"#;
        assert_eq!(named(card).as_deref(), Some(expected));
    }

    #[test]
    fn interfaces_of_tenants_and_other_versions_and_bindings_stay() {
        let card = r#"{"supportedInterfaces":[{"url":"http://a/g","protocolBinding":"GRPC","protocolVersion":"1.0"},{"tenant":"t","url":"http://a","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","x":1.10},{"url":"http://a/3","protocolBinding":"JSONRPC","protocolVersion":"0.3"}]}"#;
        let expected = r#"{"supportedInterfaces":[{"url":"http://a/g","protocolBinding":"GRPC","protocolVersion":"1.0"},{"tenant":"t","url":"https://p.example","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","x":1.10},{"url":"https://p.example/rpc","protocolBinding":"JSONRPC","protocolVersion":"0.3"},{"tenant":"t","url":"https://p.example/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0","x":1.10}]}"#;
        assert_eq!(named(card).as_deref(), Some(expected));
    }

    #[test]
    fn a_card_of_0_3_names_the_proxy() {
        let card = r#"{"url":"http://a/","preferredTransport":"HTTP+JSON","additionalInterfaces":[{"url":"http://a/g","transport":"GRPC"},{"url":"http://a/r","transport":"JSONRPC"}]}"#;
        let expected = r#"{"url":"https://p.example","preferredTransport":"HTTP+JSON","additionalInterfaces":[{"url":"http://a/g","transport":"GRPC"},{"url":"https://p.example/rpc","transport":"JSONRPC"}]}"#;
        assert_eq!(named(card).as_deref(), Some(expected));
    }

    #[test]
    fn a_card_of_0_3_gets_the_members_of_1_0() {
        let card = r#"{"url":"http://a/","securitySchemes":{"k":{"type":"apiKey","in":"header","name":"x-key"}},"security":[{"k":[]}],"skills":[{"id":"s","security":[{"k":["a"]}]}]}"#;
        let expected = r#"{"url":"https://p.example/rpc","securitySchemes":{"k":{"type":"apiKey","in":"header","name":"x-key","apiKeySecurityScheme":{"location":"header","name":"x-key"}}},"security":[{"k":[]}],"skills":[{"id":"s","security":[{"k":["a"]}],"securityRequirements":[{"schemes":{"k":{"list":["a"]}}}]}],"supportedInterfaces":[{"url":"https://p.example/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"},{"url":"https://p.example","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}],"securityRequirements":[{"schemes":{"k":{"list":[]}}}]}"#;
        let named = named_for(&[A2aVersion::V1_0, A2aVersion::V0_3], card);
        assert_eq!(named.as_deref(), Some(expected));
    }

    #[test]
    fn a_card_of_1_0_gets_the_members_of_0_3() {
        let card = r#"{"supportedInterfaces":[],"securitySchemes":{"k":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}},"securityRequirements":[{"schemes":{"k":{"list":[]}}}]}"#;
        let expected = r#"{"supportedInterfaces":[],"securitySchemes":{"k":{"httpAuthSecurityScheme":{"scheme":"Bearer"},"type":"http","scheme":"Bearer"}},"securityRequirements":[{"schemes":{"k":{"list":[]}}}],"url":"https://p.example/rpc","preferredTransport":"JSONRPC","protocolVersion":"0.3.0","additionalInterfaces":[{"url":"https://p.example/rpc","transport":"JSONRPC"},{"url":"https://p.example","transport":"HTTP+JSON"}],"security":[{"k":[]}]}"#;
        let named = named_for(&[A2aVersion::V0_3], card);
        assert_eq!(named.as_deref(), Some(expected));
    }

    #[test]
    fn members_of_another_version_that_would_be_too_deep_are_not_added() {
        let deep = format!("{}1{}", "[".repeat(29), "]".repeat(29));
        let card = format!(
            r#"{{"url":"http://a/","securitySchemes":{{"k":{{"type":"http","x":{deep}}}}}}}"#
        );
        let expected = card.replace("http://a/", "https://p.example/rpc");
        let named = named_for(&[A2aVersion::V1_0], &card);
        assert_eq!(named.as_deref(), Some(&*expected));
    }

    #[test]
    fn signatures_of_the_servers_card_are_removed() {
        let card = r#"{"url":"http://a/", "signatures":[{"protected":"e30","signature":"x"}]}"#;
        let expected = r#"{"url":"https://p.example/rpc"}"#;
        assert_eq!(named(card).as_deref(), Some(expected));
    }

    #[test]
    fn other_documents_stay() {
        for document in [
            "",
            "[]",
            "{}",
            r#"{"name":"A"}"#,
            r#"{"url":"a","url":"b"}"#,
        ] {
            assert_eq!(named(document), None, "{document}");
        }
        let odd = r#"{"supportedInterfaces":{"url":1}}"#;
        assert_eq!(named(odd).as_deref(), Some(odd));
    }
}
