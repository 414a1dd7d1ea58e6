//! The subject of a verified client certificate, in the form that client rules compare. Used by `tls_handshake`.

use std::net::IpAddr;

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::AttributeTypeAndValue;

use dualgauge_model::rollout::{AlternativeName, NameAttribute, Subject};

/// Reads the subject of a DER certificate.
pub(super) fn subject(der: &[u8]) -> Option<Subject> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let parts = certificate.subject().iter();
    let mut name: Vec<Vec<NameAttribute>> = parts
        .map(|part| part.iter().map(attribute).collect())
        .collect();
    // A certificate has the most specific part last, RFC 4514 has it first.
    name.reverse();
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.iter();
    let alternatives = alternatives.flat_map(|extension| &extension.value.general_names);
    Some(Subject::new(
        name,
        alternatives.filter_map(alternative).collect(),
    ))
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> NameAttribute {
    NameAttribute {
        kind: attribute.attr_type().to_id_string(),
        value: attribute.as_str().ok().map(str::to_owned),
    }
}

fn alternative(name: &GeneralName<'_>) -> Option<AlternativeName> {
    if let GeneralName::IPAddress(bytes) = name {
        let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
        let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
        return address.ok().map(AlternativeName::Address);
    }
    let (kind, text): (fn(String) -> AlternativeName, _) = if let GeneralName::DNSName(text) = name
    {
        (AlternativeName::Dns, text)
    } else if let GeneralName::RFC822Name(text) = name {
        (AlternativeName::Email, text)
    } else if let GeneralName::URI(text) = name {
        (AlternativeName::Uri, text)
    } else {
        return None;
    };
    Some(kind((*text).to_owned()))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;

    #[test]
    fn a_subject_is_read_field_by_field() {
        let mut params = CertificateParams::new(vec!["A.example".to_owned()]).unwrap();
        let uri = "spiffe://example/app".try_into().unwrap();
        params.subject_alt_names.push(SanType::URI(uri));
        let email = "ann@example".try_into().unwrap();
        params.subject_alt_names.push(SanType::Rfc822Name(email));
        let address = "::1".parse().unwrap();
        params.subject_alt_names.push(SanType::IpAddress(address));
        params.distinguished_name = DistinguishedName::new();
        let name = &mut params.distinguished_name;
        name.push(DnType::CountryName, "XX");
        name.push(DnType::OrganizationName, "Example, CN=admin");
        name.push(DnType::CommonName, "ios-1");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let part = |kind: &str, value: &str| {
            vec![NameAttribute {
                kind: kind.to_owned(),
                value: Some(value.to_owned()),
            }]
        };
        let name = vec![
            part("2.5.4.3", "ios-1"),
            part("2.5.4.10", "Example, CN=admin"),
            part("2.5.4.6", "XX"),
        ];
        let alternatives = vec![
            AlternativeName::Dns("A.example".to_owned()),
            AlternativeName::Uri("spiffe://example/app".to_owned()),
            AlternativeName::Email("ann@example".to_owned()),
            AlternativeName::Address(address),
        ];
        let expected = Subject::new(name, alternatives);
        assert_eq!(subject(certificate.der()), Some(expected));
        assert_eq!(subject(b"no certificate"), None);
    }
}
