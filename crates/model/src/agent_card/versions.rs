//! Members of an agent card in the forms of both A2A 0.3 and A2A 1.0.
//!
//! The two versions name the interfaces and the security requirements of an agent by different members, and describe a
//! security scheme by different members of one object. A card may have both forms.
//!
//! Laws: members that the card has keep their bytes, except for spaces between skills and between security schemes; a
//! card that has both forms stays as it is.
//!
//! Used by `agent_card`.

use bytes::Bytes;

use super::{ProxyInterfaces, enclosed, text_member};
use crate::card_plan::A2aVersion;
use dualgauge_patterns::json::{Json, JsonKind, OpenMember, same_ignoring_case};

/// The security schemes of OpenAPI that A2A has: `type` in A2A 0.3, and the member of a scheme in A2A 1.0.
const SCHEMES: [(&str, &str); 5] = [
    ("apiKey", "apiKeySecurityScheme"),
    ("http", "httpAuthSecurityScheme"),
    ("oauth2", "oauth2SecurityScheme"),
    ("openIdConnect", "openIdConnectSecurityScheme"),
    ("mutualTLS", "mtlsSecurityScheme"),
];

impl ProxyInterfaces {
    pub(super) fn serves(&self, version: A2aVersion) -> bool {
        self.versions.contains(&version)
    }

    /// Returns the members that a card lacks for clients of the versions that the proxy serves.
    pub(super) fn members_for_versions(
        &self,
        members: &[OpenMember<'_>],
        card: &Json,
    ) -> Vec<Bytes> {
        let (rpc, rest) = (Json::string(&self.rpc), Json::string(&self.rest));
        let mut added = Vec::new();
        if self.serves(A2aVersion::V1_0) && lacks(members, "supportedInterfaces") {
            let list = [version_1("JSONRPC", &rpc), version_1("HTTP+JSON", &rest)];
            added.push(member("supportedInterfaces", &enclosed(b'[', &list, b']')));
        }
        if self.serves(A2aVersion::V0_3) && lacks(members, "url") {
            let list = [former("JSONRPC", &rpc), former("HTTP+JSON", &rest)];
            for (name, value) in [
                ("url", rpc.into_bytes()),
                ("preferredTransport", Bytes::from_static(br#""JSONRPC""#)),
                ("protocolVersion", Bytes::from_static(br#""0.3.0""#)),
                ("additionalInterfaces", enclosed(b'[', &list, b']')),
            ] {
                if lacks(members, name) {
                    added.push(member(name, &value));
                }
            }
        }
        added.extend(self.requirements(members, card));
        added
    }

    /// Returns the security requirements of a card or a skill in the form that it lacks.
    fn requirements(&self, members: &[OpenMember<'_>], object: &Json) -> Option<Bytes> {
        let (former, current) = ("security", "securityRequirements");
        if self.serves(A2aVersion::V1_0) && lacks(members, current) {
            let list = mapped_list(&object.member(former)?, requirement_of_former)?;
            return Some(member(current, list.as_bytes()));
        }
        if self.serves(A2aVersion::V0_3) && lacks(members, former) {
            let list = mapped_list(&object.member(current)?, former_requirement)?;
            return Some(member(former, list.as_bytes()));
        }
        None
    }

    /// Returns a card whose security schemes and skills have both forms.
    pub(super) fn with_schemes(&self, card: &Json) -> Bytes {
        let Ok(members) = card.open() else {
            return card.clone().into_bytes();
        };
        let written = members.iter().map(|member| {
            let value = card.piece(member.value.clone());
            let value = match &*member.name {
                "securitySchemes" => self.schemes(&value),
                "skills" => self.skills(&value),
                _ => value,
            };
            let before = &card.as_bytes()[member.whole.start..member.value.start];
            Bytes::from([before, value.as_bytes()].concat())
        });
        enclosed(b'{', &written.collect::<Vec<_>>(), b'}')
    }

    /// Returns the skills of a card with their security requirements in both forms.
    fn skills(&self, list: &Json) -> Json {
        let with_requirements = |skill: &Json| {
            let added = skill.open().ok()?;
            let added = self.requirements(&added, skill);
            Some(with_members(skill, added.into_iter().collect()))
        };
        mapped_list(list, |skill| {
            Some(with_requirements(skill).unwrap_or_else(|| skill.clone()))
        })
        .unwrap_or_else(|| list.clone())
    }

    /// Returns the security schemes of a card in both forms.
    fn schemes(&self, schemes: &Json) -> Json {
        let written = mapped_object(schemes, |scheme| {
            let written = self.scheme(scheme).unwrap_or_else(|| scheme.clone());
            Some(written.into_bytes())
        });
        written.map_or_else(|| schemes.clone(), Json::written)
    }

    /// Returns a security scheme with the members that it lacks; `None` if it lacks none.
    fn scheme(&self, scheme: &Json) -> Option<Json> {
        let members = scheme.open().ok()?;
        if let Some(kind) = text_member(scheme, "type") {
            let (_, current) = SCHEMES.iter().find(|(former, _)| *former == kind)?;
            if !self.serves(A2aVersion::V1_0) || !lacks(&members, current) {
                return None;
            }
            let inner = members.iter().filter(|member| member.name != "type");
            let inner = inner.map(|inner| renamed(scheme, inner, "in", "location"));
            let inner = enclosed(b'{', &inner.collect::<Vec<_>>(), b'}');
            return Some(with_members(scheme, vec![member(current, &inner)]));
        }
        if !self.serves(A2aVersion::V0_3) || !lacks(&members, "type") {
            return None;
        }
        let found = SCHEMES.iter().find_map(|(former, current)| {
            let inner = scheme.member(current)?;
            (inner.kind() == JsonKind::Object).then_some((*former, inner))
        });
        let (kind, inner) = found?;
        let mut added = vec![member("type", Json::string(kind).as_bytes())];
        for named in &inner.open().ok()? {
            let name = if named.name == "location" {
                "in"
            } else {
                &*named.name
            };
            if name != "type" && lacks(&members, name) {
                added.push(renamed(&inner, named, "location", "in"));
            }
        }
        Some(with_members(scheme, added))
    }
}

fn version_1(binding: &str, url: &Json) -> Bytes {
    let url = member("url", url.as_bytes());
    let binding = member("protocolBinding", Json::string(binding).as_bytes());
    let version = member("protocolVersion", br#""1.0""#);
    enclosed(b'{', &[url, binding, version], b'}')
}

fn former(transport: &str, url: &Json) -> Bytes {
    let url = member("url", url.as_bytes());
    let transport = member("transport", Json::string(transport).as_bytes());
    enclosed(b'{', &[url, transport], b'}')
}

/// Returns `{"schemes":{"key":{"list":["scope"]}}}` for `{"key":["scope"]}`.
fn requirement_of_former(requirement: &Json) -> Option<Json> {
    let schemes = mapped_object(requirement, |scopes| {
        let list = member("list", scopes.as_bytes());
        (scopes.kind() == JsonKind::Array).then(|| enclosed(b'{', &[list], b'}'))
    })?;
    Some(Json::written(enclosed(
        b'{',
        &[member("schemes", &schemes)],
        b'}',
    )))
}

/// Returns `{"key":["scope"]}` for `{"schemes":{"key":{"list":["scope"]}}}`.
fn former_requirement(requirement: &Json) -> Option<Json> {
    let schemes = requirement.member("schemes").unwrap_or(Json::literal("{}"));
    let former = mapped_object(&schemes, |scopes| {
        let list = scopes.member("list").unwrap_or(Json::literal("[]"));
        (list.kind() == JsonKind::Array).then(|| list.into_bytes())
    })?;
    Some(Json::written(former))
}

/// Maps all values of an object; `None` if it is no object, or a value has no counterpart.
fn mapped_object(object: &Json, value: impl Fn(&Json) -> Option<Bytes>) -> Option<Bytes> {
    if object.kind() != JsonKind::Object {
        return None;
    }
    let members = object.open().ok()?;
    let mapped = members.iter().map(|named| {
        let mapped = value(&object.piece(named.value.clone()))?;
        let before = &object.as_bytes()[named.whole.start..named.value.start];
        Some(Bytes::from([before, &mapped].concat()))
    });
    Some(enclosed(b'{', &mapped.collect::<Option<Vec<_>>>()?, b'}'))
}

/// Maps all elements of a list; `None` if it is no list, or an element has no counterpart.
fn mapped_list(list: &Json, element: impl Fn(&Json) -> Option<Json>) -> Option<Json> {
    if list.kind() != JsonKind::Array {
        return None;
    }
    let mapped = list
        .elements()
        .map(|range| Some(element(&list.piece(range))?.into_bytes()));
    Some(Json::written(enclosed(
        b'[',
        &mapped.collect::<Option<Vec<_>>>()?,
        b']',
    )))
}

/// Returns true if no parser reads one of the members as the one with this name.
fn lacks(members: &[OpenMember<'_>], name: &str) -> bool {
    !members
        .iter()
        .any(|member| same_ignoring_case(&member.name, name))
}

fn member(name: &str, value: &[u8]) -> Bytes {
    [Json::string(name).as_bytes(), b":", value].concat().into()
}

/// Returns a member of an object, with another name if it has the first one.
fn renamed(object: &Json, named: &OpenMember<'_>, from: &str, to: &str) -> Bytes {
    let name = if named.name == from { to } else { &*named.name };
    member(name, &object.as_bytes()[named.value.clone()])
}

/// Returns an object with further members at its end.
fn with_members(object: &Json, added: Vec<Bytes>) -> Json {
    if added.is_empty() || object.kind() != JsonKind::Object {
        return object.clone();
    }
    let text = object.as_bytes();
    let mut parts = added;
    if object.member_count() > 0 {
        let first = object.as_bytes()[1..text.len() - 1].to_vec();
        parts.insert(0, first.into());
    }
    Json::written(enclosed(b'{', &parts, b'}'))
}
