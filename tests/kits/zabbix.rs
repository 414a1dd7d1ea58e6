//! Zabbix: clients that send the token in the member `auth` before a server that takes the header only, and the other way
//! round.

use super::imitations::{Migration, PYTHON};

const MEMBER: Migration<'_> = Migration {
    kit: "zabbix",
    environment: PYTHON,
    client: "zabbix.py",
    server: "zabbix_server.py",
    arguments: &[],
    own: "member",
    other: "header",
    replaced: &|_, _| None,
    upstream: Some("new"),
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
        upstream: Some("old"),
        // These have `auth: null`.
        uncalled: &["login", "open"],
        ..MEMBER
    }
    .run();
}
