//! A draft of a REST API loads, whatever the tools are, and its document describes them.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::config::configuration::Configuration;
use crate::config::load::Sources;
use dualgauge_model::document::{ApiInfo, openapi};
use dualgauge_model::import::{RestApi, RestApiOptions, draft_rest_api};

const MAIN: &str =
    "include = ['routes.toml']\n[upstream.tools]\nside = 'rpc'\nurl = 'http://127.0.0.1:2/mcp'\n";

/// Drafts and loads the API of a list; returns it with its document.
fn drafted(list: &Value) -> Option<(RestApi, Value)> {
    let options = RestApiOptions {
        reserved: super::RESERVED.to_vec(),
    };
    let api = draft_rest_api(list, &options).ok()?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    fs::write(&file, MAIN).unwrap();
    fs::write(folder.path().join("routes.toml"), &api.routes).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let read = Configuration::read(&sources);
    let read = read.unwrap_or_else(|problems| panic!("{problems}\nof\n{}", api.routes));
    let document = openapi(read.plan.routes.routes(), &ApiInfo::default());
    Some((api, document))
}

#[test]
fn a_program_may_start_for_longer_than_the_list_of_its_tools_is_waited_for() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        rest: super::RestArguments,
    }
    let limits = |seconds: &str| {
        let words = ["dualgauge", "--timeout", seconds, "--", "server"];
        <Line as clap::Parser>::parse_from(words)
            .rest
            .start_limits()
    };
    // The start may take 30 seconds by default.
    assert_eq!(limits("29"), "queue_timeout = \"30s\"\n");
    for (seconds, wait) in [("30", "35s"), ("600", "605s")] {
        let all = ["queue_timeout", "start_timeout", "timeout"];
        let all = all.map(|key| format!("{key} = \"{wait}\"\n")).concat();
        assert_eq!(limits(seconds), all);
    }
}

#[test]
fn each_list_of_the_corpus_loads_and_is_documented() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/tool_list");
    let mut loaded = 0;
    for file in fs::read_dir(corpus).unwrap() {
        let text = fs::read(file.unwrap().path()).unwrap();
        let Some((api, document)) = drafted(&serde_json::from_slice(&text).unwrap()) else {
            continue;
        };
        let items = document["paths"].as_object().unwrap().values();
        let operations: usize = items.map(|item| item.as_object().unwrap().len()).sum();
        assert_eq!(operations, api.operations.len(), "{}", api.routes);
        loaded += 1;
    }
    assert!(loaded >= 5, "{loaded} lists were loaded");
}

#[test]
fn the_document_has_what_a_tool_says() {
    let filter = json!({ "$ref": "#/$defs/Filter" });
    let list = json!({ "tools": [{
        "name": "search",
        "title": "Search",
        "description": "Finds items.\nBy words.",
        "annotations": { "readOnlyHint": true },
        "inputSchema": {
            "type": "object",
            "required": ["words"],
            "properties": {
                "words": { "type": "string", "description": "To look for" },
                "filter": filter,
            },
            "$defs": { "Filter": { "type": "object", "properties": { "inner": filter } } },
        },
        "outputSchema": { "type": "object", "properties": { "count": { "type": "integer" } } },
    }] });
    let (_, document) = drafted(&list).unwrap();
    let item = &document["paths"]["/search"];
    for method in ["get", "post"] {
        let operation = &item[method];
        assert_eq!(operation["summary"], "Search");
        assert_eq!(operation["description"], "Finds items.\nBy words.");
        assert_eq!(operation["x-mcp-tool"], "search");
        let responses = &operation["responses"];
        let value = &responses["200"]["content"]["application/json"]["schema"];
        assert_eq!(value["properties"]["count"]["type"], "integer");
        // A tool with an outputSchema always has a value (MCP, "Output Schema").
        assert!(responses["204"].is_null() && responses["422"].is_object());
    }
    let plain = json!({ "tools": [{ "name": "clear", "inputSchema": { "type": "object" } }] });
    let (_, cleared) = drafted(&plain).unwrap();
    let responses = &cleared["paths"]["/clear"]["post"]["responses"];
    assert!(responses["200"].is_object() && responses["204"].is_object());
    let parameters = &item["get"]["parameters"];
    assert_eq!(parameters[1]["name"], "words");
    assert_eq!(parameters[1]["description"], "To look for");
    let inside = &parameters[0]["content"]["application/json"]["schema"];
    let name = inside["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
    let filter = &document["components"]["schemas"][name];
    assert_eq!(filter["properties"]["inner"], *inside);
}
