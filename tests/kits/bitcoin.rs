//! Bitcoin Core: clients of its REST interface before a node that has only JSON-RPC, and the other way round; clients of
//! JSON-RPC 1.1 before a server of 2.0.

use super::imitations::{Migration, PYTHON};

const REST: Migration<'_> = Migration {
    kit: "bitcoin",
    environment: PYTHON,
    client: "bitcoin_rest.py",
    server: "bitcoin_server.py",
    arguments: &[],
    own: "rest",
    other: "rpc",
    replaced: &|line, url| {
        let is_url = line.starts_with("url = ");
        is_url.then(|| format!("url = \"{url}/\""))
    },
    upstream: None,
    uncalled: &["block.details", "legacy"],
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
        uncalled: &["filter", "height.hex", "legacy", "transaction"],
        ..REST
    }
    .run();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn python_bitcoinrpc_gets_the_same_results_from_json_rpc_2() {
    Migration {
        // Its package has the same name as that of the other client.
        environment: "kits-bitcoin",
        client: "bitcoin_legacy.py",
        own: "rpc",
        other: "rpc2",
        uncalled: &[
            "block",
            "block.details",
            "block.hex",
            "block.summary",
            "chain",
            "deployments",
            "deployments.at",
            "filter",
            "header",
            "header.hex",
            "height",
            "height.hex",
            "mempool",
            "mempool.contents",
            "transaction",
            "transaction.hex",
        ],
        ..REST
    }
    .run();
}
