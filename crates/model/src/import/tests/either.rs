//! Methods that take params by name and by position.

use super::{DocumentKind, drafted, json, rest, routes};
use serde_json::Value;

fn either(methods: Value) -> (DocumentKind, Value) {
    let document = json!({ "openrpc": "1.3.2", "methods": methods });
    (DocumentKind::OpenRpc, document)
}

#[test]
fn a_method_without_a_param_structure_sends_an_array_and_takes_an_object() {
    let params = json!([
        { "name": "Address", "required": true, "schema": { "type": "string" } },
        { "name": "Block", "schema": { "type": "string" } },
    ]);
    for structure in [Value::Null, json!("either")] {
        let method =
            json!({ "name": "eth_getBalance", "params": params, "paramStructure": structure });
        let documents = [either(json!([method]))];
        assert_eq!(drafted(documents.clone()).report.rpc_alone, 1);
        assert_eq!(
            routes(documents),
            "[[route]]\n\
             name = \"eth_getBalance\"\n\
             rest = \"POST /eth_getBalance\"\n\
             rpc = \"eth_getBalance\"\n\
             body = { Address = \"{Address:string}\", Block = \"{Block:string?}\" }\n\
             params = [\"{Address}\", \"{Block}\"]\n\
             [[route]]\n\
             name = \"eth_getBalance.by-name\"\n\
             rest = \"POST /eth_getBalance\"\n\
             rpc = \"eth_getBalance\"\n\
             from = \"rpc\""
        );
    }
}

#[test]
fn a_method_without_params_sends_an_empty_array() {
    let found = routes([either(json!([{ "name": "blockNumber", "params": [] }]))]);
    assert_eq!(found.matches("params = []").count(), 1, "{found}");
    assert_eq!(found.matches("from = \"rpc\"").count(), 1, "{found}");
}

#[test]
fn a_declared_structure_has_one_route() {
    for structure in ["by-name", "by-position"] {
        let method =
            json!({ "name": "f", "params": [{ "name": "a" }], "paramStructure": structure });
        let found = routes([either(json!([method]))]);
        assert_eq!(found.matches("[[route]]").count(), 1, "{found}");
    }
}

#[test]
fn a_pair_takes_either_form() {
    let parameters = json!([{ "name": "id", "in": "path", "schema": { "type": "integer" } }]);
    let paths =
        json!({ "/pets/{id}": { "get": { "operationId": "pets.get", "parameters": parameters } } });
    let methods =
        json!([{ "name": "pets.get", "params": [{ "name": "petId", "required": true }] }]);
    let documents = [rest(paths), either(methods)];
    assert_eq!(drafted(documents.clone()).report.paired, 1);
    let found = routes(documents);
    assert!(found.contains("params = [\"{petId}\"]"), "{found}");
    assert!(found.contains("from = \"rpc\""), "{found}");
    assert_eq!(
        found.matches("\"GET /pets/{petId:integer}\"").count(),
        2,
        "{found}"
    );
}

#[test]
fn a_pair_whose_parameter_has_no_position_is_by_name() {
    let parameters = json!([{ "name": "tenant", "in": "query", "required": true }]);
    let paths = json!({ "/pets": { "get": { "operationId": "pets", "parameters": parameters } } });
    let documents = [
        rest(paths),
        either(json!([{ "name": "pets", "params": [] }])),
    ];
    let found = drafted(documents.clone());
    assert_eq!(found.report.paired, 1, "{}", found.toml);
    let look = "look: it accepts params by name and by position; this route uses names only, because no positional param matches `tenant`";
    assert!(found.toml.contains(look), "{}", found.toml);
    assert_eq!(routes(documents).matches("[[route]]").count(), 1);
}
