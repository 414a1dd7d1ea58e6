//! Zabbix: clients that send the token in the member `auth` before a server that takes the header only, and the other way
//! round.

use super::imitations::{Migration, PYTHON};

/// Sets the URL of the upstream for the API that the kit translates to.
fn with_url(line: &str, url: &str, to_header: bool) -> Option<String> {
    let (_, value) = line.split_once(" = ").filter(|(key, _)| *key == "url")?;
    match (value.contains("api_jsonrpc.php"), to_header) {
        (true, true) => Some(format!("url = \"{url}/zabbix/api_jsonrpc.php\"")),
        (false, false) => Some(format!("url = \"{url}\"")),
        (true, false) | (false, true) => None,
    }
}

const MEMBER: Migration<'_> = Migration {
    kit: "zabbix",
    environment: PYTHON,
    client: "zabbix.py",
    server: "zabbix_server.py",
    arguments: &[],
    own: "member",
    other: "header",
    replaced: &|line, url| with_url(line, url, true),
    // Calls without the member pass.
    uncalled: &["open.back"],
};

#[test]
#[ignore = "needs .ci/install-kits"]
fn pyzabbix_gets_the_results_of_the_member_from_the_header() {
    MEMBER.run();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn zabbix_utils_gets_the_results_of_the_header_from_the_member() {
    Migration {
        client: "zabbix_header.py",
        own: "header",
        other: "member",
        replaced: &|line, url| {
            let back = r#"default = { rest = "passthrough", rpc = "translate" }"#;
            let is_flags = line.starts_with("flags = ");
            let flags = is_flags.then(|| back.to_owned());
            flags.or_else(|| with_url(line, url, false))
        },
        // These have `auth: null`.
        uncalled: &["login", "open"],
        ..MEMBER
    }
    .run();
}
