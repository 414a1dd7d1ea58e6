//! The subject of a client certificate that was verified, as rules of clients compare it.

use std::fmt::Write;
use std::net::IpAddr;

use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use crate::domain::rollout::Subject;

/// Reads the subject of a certificate in DER form.
pub(super) fn subject(der: &[u8]) -> Option<Subject> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let name = certificate.subject();
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.iter();
    Some(Subject {
        name: distinguished(name),
        common_names: name
            .iter_common_name()
            .filter_map(|attribute| Some(attribute.as_str().ok()?.to_owned()))
            .collect(),
        alternatives: alternatives
            .flat_map(|extension| &extension.value.general_names)
            .filter_map(alternative)
            .collect(),
    })
}

fn alternative(name: &GeneralName<'_>) -> Option<String> {
    if let GeneralName::DNSName(text) | GeneralName::URI(text) | GeneralName::RFC822Name(text) =
        name
    {
        return Some((*text).to_owned());
    }
    if let GeneralName::IPAddress(bytes) = name {
        let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
        let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
        return address.ok().map(|address| address.to_string());
    }
    None
}

/// RFC 4514 §2: the parts from the last to the first, `,` between them and `+` within one.
fn distinguished(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> = name
        .iter()
        .map(|part| {
            let attributes: Vec<String> = part.iter().map(attribute).collect();
            attributes.join("+")
        })
        .collect();
    parts.reverse();
    parts.join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let kind = attribute.attr_type();
    match (oid2abbrev(kind, oid_registry()), attribute.as_str()) {
        (Ok(name), Ok(text)) => format!("{name}={}", escaped(text)),
        (Err(_), Ok(text)) => format!("{kind}={}", escaped(text)),
        (_, Err(_)) => {
            let mut text = format!("{kind}=#");
            for byte in attribute.as_slice() {
                let _ = write!(text, "{byte:02x}");
            }
            text
        }
    }
}

/// RFC 4514 §2.4: without this, a value with a comma would look like two parts.
fn escaped(text: &str) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut written = String::with_capacity(text.len());
    for (place, character) in text.chars().enumerate() {
        let at_end = place == last && character == ' ';
        let at_begin = place == 0 && matches!(character, ' ' | '#');
        if character == '\0' {
            written.push_str("\\00");
            continue;
        }
        let special = matches!(character, '"' | '+' | ',' | ';' | '<' | '>' | '\\');
        if special || at_begin || at_end {
            written.push('\\');
        }
        written.push(character);
    }
    written
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    #[test]
    fn a_subject_is_written_as_the_rfc_says() {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        let uri = "spiffe://example/app".try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        let address = "::1".parse().unwrap();
        params.subject_alt_names.push(SanType::IpAddress(address));
        let name = &mut params.distinguished_name;
        name.push(DnType::OrganizationName, "Example, CN=admin");
        name.push(DnType::CommonName, "ios-1");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let found = subject(certificate.der()).unwrap();
        assert_eq!(found.name, "O=Example\\, CN=admin,CN=ios-1");
        assert_eq!(found.common_names, ["ios-1"]);
        assert_eq!(
            found.alternatives,
            ["a.example", "spiffe://example/app", "::1"]
        );
        assert_eq!(subject(b"no certificate"), None);
        assert_eq!(escaped(" a#b "), "\\ a#b\\ ");
        assert_eq!(escaped("#a\0"), "\\#a\\00");
    }
}
