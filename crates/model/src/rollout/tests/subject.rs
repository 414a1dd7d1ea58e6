use proptest::prelude::*;

use super::*;
use crate::client_ip::Network;

const CN: &str = "2.5.4.3";
const O: &str = "2.5.4.10";
const OU: &str = "2.5.4.11";
const UID: &str = "0.9.2342.19200300.100.1.1";

fn attribute((kind, value): &(&str, &str)) -> NameAttribute {
    NameAttribute {
        kind: (*kind).to_owned(),
        value: Some((*value).to_owned()),
    }
}

/// A subject whose parts have one attribute each.
fn named(attributes: &[(&str, &str)]) -> Subject {
    let parts = attributes.iter().map(|own| vec![attribute(own)]);
    Subject::new(parts.collect(), Vec::new())
}

fn fits(pattern: &str, subject: &Subject) -> bool {
    let pattern = NamePattern::parse(pattern).unwrap_or_else(|fault| panic!("{pattern} {fault}"));
    subject.fits(&SubjectPattern::Name(pattern))
}

#[test]
fn a_name_fits_field_by_field() {
    let phone = [(CN, "ios-1"), (O, "Example")];
    for pattern in [
        "CN=ios-*,O=Example",
        "cn = ios-1 , 2.5.4.10=Ex*",
        "CN=*,O=*",
        "CN=ios-*,*",
        "*,O=Example",
        "*,CN=ios-*,*",
        "*",
    ] {
        assert!(fits(pattern, &named(&phone)), "{pattern}");
    }
    for pattern in [
        "CN=ios-*",
        "O=Example",
        "O=Example,CN=ios-*",
        "CN=ios-*,OU=Example",
        "CN=ios-*,O=Example,C=*",
        "CN=ios-*+O=Example",
        "CN=ios-*,O=example",
        "CN=ios-*,*,OU=*",
    ] {
        assert!(!fits(pattern, &named(&phone)), "{pattern}");
    }
}

#[test]
fn a_value_never_reads_as_another_field() {
    let pattern = "CN=ios-*,O=Example";
    let forged: [&[(&str, &str)]; 6] = [
        &[(CN, "ios-1"), (O, "Evil\\,O=Example")],
        &[(CN, "ios-1"), (O, "Evil\\"), (O, "Example")],
        &[(CN, "ios-1"), (OU, "Evil"), (O, "Example")],
        &[(CN, "ios-1,O=Example")],
        &[(CN, "ios-1,O=Example"), (O, "Evil")],
        &[(OU, "Evil,CN=ios-1"), (O, "Example")],
    ];
    for name in forged {
        assert!(!fits(pattern, &named(name)), "{name:?}");
    }
    let joined = [attribute(&(CN, "ios-1")), attribute(&(OU, "Evil"))];
    let parts = vec![joined.to_vec(), vec![attribute(&(O, "Example"))]];
    assert!(!fits(pattern, &Subject::new(parts, Vec::new())));
}

#[test]
fn parts_of_several_attributes_have_no_order() {
    let joined = vec![attribute(&(UID, "7")), attribute(&(CN, "ios-1"))];
    let subject = Subject::new(vec![joined, vec![attribute(&(O, "x"))]], Vec::new());
    assert!(fits("CN=ios-*+UID=7,O=x", &subject));
    assert!(fits("*,O=x", &subject));
    assert!(!fits("CN=ios-*,O=x", &subject));
    assert!(!fits("CN=ios-*,UID=7,O=x", &subject));
}

#[test]
fn a_value_that_is_no_text_fits_no_value() {
    let mut unread = attribute(&(O, ""));
    unread.value = None;
    let parts = vec![vec![attribute(&(CN, "a"))], vec![unread]];
    let subject = Subject::new(parts, Vec::new());
    assert!(!fits("CN=a,O=*", &subject));
    assert!(fits("CN=a,*", &subject));
}

#[test]
fn values_are_unescaped_as_the_rfc_says() {
    let rows = [
        ("O=Evil\\\\\\,O\\=Example", "Evil\\,O=Example"),
        ("O=a\\+b\\2cc", "a+b,c"),
        ("O=  \\ a \\  ", " a  "),
        ("O=\\#1=2#", "#1=2#"),
        ("O=Lu\\C4\\8Di\\c4\\87", "Lučić"),
        ("O=", ""),
    ];
    for (pattern, value) in rows {
        assert!(fits(pattern, &named(&[(O, value)])), "{pattern}");
    }
}

#[test]
fn a_name_is_written_as_the_rfc_says() {
    let named = named(&[(CN, " a,b\r\n "), (O, "#Luč"), ("1.2.3", "x=\"+")]);
    let text = named.text().unwrap();
    assert_eq!(text, r#"CN=\ a\,b\0D\0A\ ,O=\#Lu\C4\8D,1.2.3=x\=\"\+"#);
    assert!(fits(&text, &named), "it is a pattern for itself");
    assert_eq!(Subject::default().text(), None);
    let joined = vec![attribute(&(UID, "7")), attribute(&(CN, "a"))];
    let joined = Subject::new(vec![joined, vec![attribute(&(O, "x"))]], Vec::new());
    assert_eq!(joined.text().unwrap(), "UID=7+CN=a,O=x");
}

#[test]
fn an_invalid_pattern_for_names_is_reported() {
    use NameFault as F;
    let rows = [
        ("ios-*", F::NoType("ios-*".to_owned())),
        ("CN=a,", F::NoType(String::new())),
        ("CN=a;O=b", F::Unescaped(';')),
        ("CN=\"a\"", F::Unescaped('"')),
        ("CNN=a", F::UnknownType("CNN".to_owned())),
        ("2.05.4=a", F::UnknownType("2.05.4".to_owned())),
        ("CN=a+cn=b", F::TwiceInPart("cn".to_owned())),
        ("CN=#0c01", F::Hexadecimal),
        ("CN=a\\", F::Escape),
        ("CN=\\zz", F::Escape),
        ("CN=\\*", F::Star),
        ("CN=\\2A", F::Star),
        ("CN=\\ff", F::NotText),
    ];
    for (pattern, fault) in rows {
        assert_eq!(NamePattern::parse(pattern), Err(fault), "{pattern}");
    }
}

#[test]
fn an_alternative_name_matches_patterns_of_its_kind() {
    let dns = |text: &str| SubjectPattern::Dns(DnsPattern::new(text));
    let email = |text: &str| SubjectPattern::Email(EmailPattern::new(text));
    let uri = |text: &str| SubjectPattern::Uri(UriPattern::new(text));
    let ip = |text: &str| SubjectPattern::Address(Network::parse(text).unwrap());
    let names = vec![
        AlternativeName::Dns("Ios-1.Phones.example".to_owned()),
        AlternativeName::Email("Ann@Mail.example".to_owned()),
        AlternativeName::Uri("SPIFFE://Trust.example/ns/App".to_owned()),
        AlternativeName::Address("192.0.2.7".parse().unwrap()),
    ];
    let subject = Subject::new(Vec::new(), names);
    for pattern in [
        dns("*.phones.EXAMPLE"),
        email("Ann@mail.EXAMPLE"),
        email("*.example"),
        uri("spiffe://TRUST.example/ns/*"),
        uri("spiffe://*"),
        uri("*/App"),
        ip("192.0.2.0/24"),
    ] {
        assert!(subject.fits(&pattern), "{pattern:?}");
    }
    for pattern in [
        dns("*@mail.example"),
        dns("192.0.2.7"),
        email("ann@mail.example"),
        email("*.phones.example"),
        email("Ann@*.mail.example"),
        uri("*.phones.example"),
        uri("spiffe://*/app"),
        uri("spiffe://trust.example"),
        ip("192.0.2.8"),
    ] {
        assert!(!subject.fits(&pattern), "{pattern:?}");
    }
}

#[test]
fn a_path_never_reads_as_the_host_of_a_uri() {
    let pattern = SubjectPattern::Uri(UriPattern::new("spiffe://*.example/app"));
    let of = |uri: &str| Subject::new(Vec::new(), vec![AlternativeName::Uri(uri.to_owned())]);
    assert!(of("spiffe://a.example/app").fits(&pattern));
    for uri in [
        "spiffe://evil/a.example/app",
        "spiffe://evil?a.example/app",
        "spiffe:a://a.example/app",
    ] {
        assert!(!of(uri).fits(&pattern), "{uri}");
    }
}

/// The value with every special character escaped.
fn escaped(value: &str) -> String {
    let bytes = value.bytes();
    bytes.map(|byte| format!("\\{byte:02x}")).collect()
}

proptest! {
    /// Whatever the values hold, a pattern without `*` fits its own name and no other.
    #[test]
    fn a_literal_pattern_matches_only_its_name(
        own in prop::collection::vec((0_usize..3, "[aO=,+\\\\ ]{0,4}"), 1..4),
        other in prop::collection::vec((0_usize..3, "[aO=,+\\\\ ]{0,4}"), 1..4),
    ) {
        let types = [("CN", CN), ("O", O), ("OU", OU)];
        let parts = own.iter().map(|(kind, value)| format!("{}={}", types[*kind].0, escaped(value)));
        let pattern = parts.collect::<Vec<_>>().join(",");
        let subject = |parts: &[(usize, String)]| {
            let parts = parts.iter().map(|(kind, value)| vec![attribute(&(types[*kind].1, value.as_str()))]);
            Subject::new(parts.collect(), Vec::new())
        };
        prop_assert!(fits(&pattern, &subject(&own)));
        prop_assert_eq!(fits(&pattern, &subject(&other)), own == other);
    }
}
