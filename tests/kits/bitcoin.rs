//! Bitcoin Core: clients of its REST interface before a node that has only JSON-RPC, and the other way round.

use super::imitations::Migration;

const REST: Migration<'_> = Migration {
    kit: "bitcoin",
    client: "bitcoin_rest.py",
    server: "bitcoin_server.py",
    arguments: &[],
    own: "rest",
    other: "rpc",
    replaced: &|line, url| {
        let is_url = line.starts_with("url = ");
        is_url.then(|| format!("url = \"{url}/\""))
    },
    uncalled: &["block.details"],
};

#[test]
#[ignore = "needs .ci/install-kits"]
fn clients_of_rest_get_its_results_from_json_rpc() {
    REST.run();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn bitcoinrpc_gets_the_results_of_json_rpc_from_rest() {
    let replaced = |line: &str, url: &str| match line.split_once(" = ")? {
        ("side", _) => Some(r#"side = "rest""#.to_owned()),
        ("flags", _) => Some(r#"default = { rest = "passthrough", rpc = "translate" }"#.to_owned()),
        ("url", _) => Some(format!("url = \"{url}\"")),
        _ => None,
    };
    Migration {
        client: "bitcoin.py",
        own: "rpc",
        other: "rest",
        replaced: &replaced,
        // Their results have fewer members in REST.
        uncalled: &["filter", "height.hex", "transaction"],
        ..REST
    }
    .run();
}
