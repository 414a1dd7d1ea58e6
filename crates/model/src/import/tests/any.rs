//! Documents of any kind: no panic, and what was read is in the draft.

use super::{DocumentKind, ImportDraft, draft, given, json, prop_assert, prop_assert_eq, proptest};
use crate::import::arbitrary::{any_json, api, rpc};

/// The text is TOML with as many routes as were counted, and every operation is somewhere.
fn holds(draft: &ImportDraft) -> Result<(), proptest::test_runner::TestCaseError> {
    let table = draft.toml.parse::<toml::Table>();
    prop_assert!(table.is_ok(), "{:?} in\n{}", table.err(), draft.toml);
    // A method that accepts either form has a second route, for RPC clients.
    let is_first =
        |route: &&toml::Value| route.get("from").and_then(toml::Value::as_str) != Some("rpc");
    let routes = table.ok().and_then(|table| {
        let routes = table.get("route")?.as_array()?;
        Some(routes.iter().filter(is_first).count())
    });
    let report = &draft.report;
    let counted = report.paired + report.rest_alone + report.rpc_alone;
    prop_assert_eq!(routes.unwrap_or_default(), counted);
    let accounted = counted + report.paired + report.left_out.len();
    prop_assert_eq!(report.rest + report.rpc, accounted, "{}", draft.toml);
    Ok(())
}

proptest! {
    #[test]
    fn no_json_whatever_is_a_panic(document in any_json()) {
        for kind in [DocumentKind::OpenApi, DocumentKind::OpenRpc, DocumentKind::Tools] {
            if let Ok(draft) = draft(&[given(kind, document.clone())]) {
                holds(&draft)?;
            }
        }
    }

    #[test]
    fn parts_of_documents_may_be_anything(part in any_json(), other in any_json()) {
        let documents = [
            given(DocumentKind::OpenApi, json!({ "openapi": "3.0.0", "paths": { "/a/{x}": part, "/b": { "post": other } } })),
            given(DocumentKind::OpenRpc, json!({ "openrpc": "1.0.0", "methods": [part, { "name": "b", "params": other }] })),
            given(DocumentKind::Tools, json!({ "tools": [{ "name": "a", "inputSchema": part }, other] })),
        ];
        for document in documents {
            if let Ok(draft) = draft(&[document]) {
                holds(&draft)?;
            }
        }
    }

    #[test]
    fn every_small_document_is_toml_with_all_of_its_operations(api in api(), rpc in rpc()) {
        let documents = [given(DocumentKind::OpenApi, api), given(DocumentKind::OpenRpc, rpc)];
        let both = draft(&documents).map_err(|error| proptest::test_runner::TestCaseError::fail(error.to_string()))?;
        holds(&both)?;
        for one in &documents {
            let one = std::slice::from_ref(one);
            holds(&draft(one).map_err(|error| proptest::test_runner::TestCaseError::fail(error.to_string()))?)?;
        }
        prop_assert_eq!(draft(&documents), Ok(both));
    }
}
