//! A draft is a route file, whatever the documents are.

use std::fs;

use proptest::prelude::*;
use serde_json::json;

use crate::config::configuration::Configuration;
use crate::config::load::Sources;
use dualgauge_model::import::arbitrary::{api, rpc};
use dualgauge_model::import::{DocumentKind, SourceDocument, draft};

const MAIN: &str = "include = ['routes.toml']\n\
                    [upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
                    [upstream.new]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/rpc'\n";

/// What is wrong with a route file.
fn problems(routes: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    fs::write(&file, MAIN).unwrap();
    fs::write(folder.path().join("routes.toml"), routes).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let read = Configuration::read(&sources);
    read.err()
        .map(|problems| problems.to_string())
        .unwrap_or_default()
}

#[test]
fn a_path_that_no_route_can_have_is_left_out() {
    let segments = [
        "/.", "/.:a", "/..:a", "/*:a", "/:a", "/a:", "/a:.", "/a:..", "/a:**", "/{id}:.", "/{id}:*",
    ];
    for path in segments {
        let get = json!({ "get": { "responses": {} } });
        let document = json!({ "openapi": "3.1.0", "paths": { path: get, "/usual": get } });
        let (name, kind) = ("document".to_owned(), DocumentKind::OpenApi);
        let given = SourceDocument {
            name,
            kind,
            document,
        };
        let toml = draft(&[given]).unwrap().toml;
        assert_eq!(problems(&toml), "", "{toml}");
        let routes: Vec<_> = toml.matches("rest = ").collect();
        assert!(
            routes.len() == 1 && toml.contains("\"GET /usual\""),
            "{toml}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_draft_is_a_route_file_without_problems(api in api(), rpc in rpc()) {
        let given = |kind, document| SourceDocument { name: "document".to_owned(), kind, document };
        let drafted = draft(&[given(DocumentKind::OpenApi, api), given(DocumentKind::OpenRpc, rpc)]);
        let toml = drafted.map(|draft| draft.toml).unwrap_or_default();
        prop_assert_eq!(problems(&toml), "", "{}", toml);
    }
}
