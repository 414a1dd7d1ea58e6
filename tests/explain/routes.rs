//! `routes`: streams among the routes, and documents that `import` reads again.

use std::fs;
use std::process::Command;

use super::{Bench, ROUTES};

#[test]
fn streams_stand_behind_the_routes() {
    let bench = Bench::new();
    let stream = "[[stream]]\nname = 'told'\nrest = 'GET /old/{id}'\nrpc = 'GET /new/{id}'\n";
    bench.write("routes.toml", &format!("{ROUTES}\n{stream}"));
    let told = ["routes", "--route", "told"];
    let human = bench.run(&told, "").stdout;
    let line = human.lines().nth(1).unwrap();
    let cells: Vec<&str> = line.split("  ").map(str::trim).collect();
    let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
    let wanted = [
        "told",
        "GET /old/{id}",
        "GET /new/{id}",
        "stream",
        "-",
        "id",
        "0",
    ];
    assert_eq!(cells[..7], wanted, "{human}");
    let all = bench.run(&["routes"], "").stdout;
    assert!(all.lines().last().unwrap().starts_with("told "), "{all}");
    let json = bench.run(&["routes", "--format", "json", "--route", "told"], "");
    let rows: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&rows[0]["effect"], &rows[0]["extra"]),
        (&"stream".into(), &serde_json::Value::Null)
    );
}

/// A document without what only names the routes, and without what the rows say.
fn shape(document: &str) -> serde_json::Value {
    let mut document: serde_json::Value = serde_json::from_str(document).unwrap();
    let mut shapes = serde_json::Map::new();
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for (method, operation) in item.as_object_mut().unwrap() {
                let parameters = operation["parameters"].take();
                let body = operation["requestBody"].take();
                let shape = serde_json::json!({ "parameters": parameters, "body": body });
                shapes.insert(format!("{method} {path}"), shape);
            }
        }
    }
    for method in document["methods"].as_array_mut().into_iter().flatten() {
        let name = method["name"].as_str().unwrap().to_owned();
        shapes.insert(name, method["params"].take());
    }
    shapes.into()
}

#[test]
fn what_is_exported_is_imported_as_the_same_routes() {
    const SHORT: &str = r#"
[[route]]
name = "repository.search"
rest = "GET /api/search?query={query}&limit={limit:integer=50}&kinds={kinds:string[,]?}&tags={tags:string[]?}"
rpc = "repository/search"
[[route]]
name = "items.read"
rest = "GET /items/{id}"
rpc = "items/read"
[[route]]
name = "items.delete"
rest = "DELETE /items/{id:integer}?force={force:boolean?}"
rpc = "items/delete"
[[route]]
name = "items.list"
rest = "GET /items?order={order:enum(up|down)}"
rpc = "items/list"
"#;
    let bench = Bench::new();
    bench.write("routes.toml", SHORT);
    bench.write("flags.toml", "");
    let export = |format: &str| {
        let run = bench.run(&["routes", "--format", format], "");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{format}");
        run.stdout
    };
    let documents = ["openapi", "openrpc"].map(export);
    bench.write("openapi.json", &documents[0]);
    bench.write("openrpc.json", &documents[1]);
    let imported = Command::new(env!("CARGO_BIN_EXE_dualgauge"))
        .args([
            "import",
            "--openapi",
            "openapi.json",
            "--openrpc",
            "openrpc.json",
        ])
        .args(["--output", "routes.toml", "--force"])
        .current_dir(bench.0.path())
        .output()
        .unwrap();
    assert!(imported.status.success(), "{imported:?}");
    let again = ["openapi", "openrpc"].map(export);
    for (first, second) in documents.iter().zip(&again) {
        assert_eq!(
            shape(second),
            shape(first),
            "{}",
            fs::read_to_string(bench.0.path().join("routes.toml")).unwrap()
        );
    }
}
