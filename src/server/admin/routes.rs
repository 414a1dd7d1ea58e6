//! Routing of admin requests by method and path. Used by `admin::problem` and `admin::response`.

use http::Method;

use super::console::{self, ConsoleFile};
use dualgauge_model::rollout::overrides::Change;
use dualgauge_patterns::percent::{Plus, decode};
use dualgauge_patterns::side::Side;

/// An endpoint of the admin listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AdminEndpoint {
    Health,
    Readiness,
    Metrics,
    Flags,
    Flag(String),
    /// Overrides a flag with the values of the body.
    Flip(String),
    /// Applies a change that needs no body.
    Change(Change),
    History,
    /// Reloads the configuration files.
    Reload,
    Recording,
    /// Starts a recording.
    Record,
    /// Stops the recording.
    StopRecording,
    Plan,
    Usage,
    Mismatches,
    /// Deletes recorded mismatches.
    ForgetMismatches,
    /// Explains the call in the query.
    ExplainQuery,
    /// Explains the call in the body.
    ExplainBody,
    /// Evaluates a flag for an application, or all flags without a key.
    Evaluate(Option<String>),
    /// Returns the OpenAPI document of this API.
    Api,
    /// Returns the document of one side of the routes.
    Document(Side),
    /// Returns a file of the console, or of the page that shows this API.
    Page(&'static ConsoleFile),
    /// Returns a part of the state.
    View(View),
    /// Returns the overview again whenever it changes.
    Live,
}

/// A part of the state, as the console shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum View {
    Overview,
    Status,
    Clients,
    Routes,
    Route(String),
    /// Checks one route.
    Verdict(String),
    Performance,
    Differences,
    /// Returns calls without a route.
    Unrouted,
    /// Previews new values of a flag.
    Preview(String),
}

/// A failed lookup of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotFound {
    /// The path does not exist.
    NotFound,
    /// The path exists for other methods.
    Method {
        /// The value of `Allow`.
        allow: &'static str,
    },
}

const READ: &str = "GET, HEAD";
const WRITE: &str = "GET, HEAD, PUT, DELETE";
const SWITCH: &str = "PUT, DELETE";
const KEPT: &str = "GET, HEAD, DELETE";
const POST: &str = "POST";
const ASK: &str = "GET, HEAD, POST";

/// Returns true if a path belongs to the API, which needs tokens on a non-loopback address. The pages that show it do
/// not: a browser has no token before it has the page, and they contain nothing of this process.
pub(super) fn needs_token(path: &str) -> bool {
    let begins = |root| {
        let rest: Option<&str> = path.strip_prefix(root);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    (begins("/api") || begins("/ofrep")) && console::find(path).is_none()
}

/// Returns true if a method may change something.
pub(super) fn is_write(method: &Method) -> bool {
    !reads(method)
}

/// Looks up an endpoint.
pub(super) fn parse(method: &Method, path: &str) -> Result<AdminEndpoint, NotFound> {
    let target = match path {
        "/healthz" => AdminEndpoint::Health,
        "/readyz" => AdminEndpoint::Readiness,
        "/metrics" => AdminEndpoint::Metrics,
        "/api/v1/flags" => AdminEndpoint::Flags,
        "/api/v1/history" => AdminEndpoint::History,
        "/api/v1/kill" => return switch(method, Change::Kill, Change::Revive),
        "/api/v1/undo" => {
            return post(method, AdminEndpoint::Change(Change::Undo { flag: None }));
        }
        "/api/v1/reload" => return post(method, AdminEndpoint::Reload),
        "/api/v1/recording" => return recording(method),
        "/api/v1/plan" => AdminEndpoint::Plan,
        "/api/v1/usage" => AdminEndpoint::Usage,
        "/api/v1/unrouted" => AdminEndpoint::View(View::Unrouted),
        "/api/v1/mismatches" => return mismatches_endpoint(method),
        "/api/v1/explain" => return ask(method),
        "/ofrep/v1/evaluate/flags" => return post(method, AdminEndpoint::Evaluate(None)),
        "/api/v1/overview" => AdminEndpoint::View(View::Overview),
        "/api/v1/live" => AdminEndpoint::Live,
        "/api/v1/status" => AdminEndpoint::View(View::Status),
        "/api/v1/clients" => AdminEndpoint::View(View::Clients),
        "/api/v1/routes" => AdminEndpoint::View(View::Routes),
        "/api/v1/performance" => AdminEndpoint::View(View::Performance),
        "/api/v1/differences" => AdminEndpoint::View(View::Differences),
        "/api/v1/admin.json" => AdminEndpoint::Api,
        "/api/v1/openapi.json" => AdminEndpoint::Document(Side::Rest),
        "/api/v1/openrpc.json" => AdminEndpoint::Document(Side::Rpc),
        _ => match console::find(path) {
            Some(file) => AdminEndpoint::Page(file),
            None => return named(method, path),
        },
    };
    read_only(method, target)
}

/// Returns an endpoint that can only be read.
fn read_only(method: &Method, target: AdminEndpoint) -> Result<AdminEndpoint, NotFound> {
    if reads(method) {
        Ok(target)
    } else {
        Err(NotFound::Method { allow: READ })
    }
}

/// Looks up an endpoint with the name of a flag or route in its path.
fn named(method: &Method, path: &str) -> Result<AdminEndpoint, NotFound> {
    if let Some(key) = path.strip_prefix("/ofrep/v1/evaluate/flags/") {
        return post(method, AdminEndpoint::Evaluate(Some(segment(key)?)));
    }
    if let Some(route) = path.strip_prefix("/api/v1/called-off/") {
        let route = segment(route)?;
        let off = Change::CallOff {
            route: route.clone(),
        };
        return switch(method, off, Change::CallOn { route });
    }
    if let Some(route) = path.strip_prefix("/api/v1/routes/") {
        let view = match route.split_once('/') {
            None => View::Route(segment(route)?),
            Some((name, "verdict")) => View::Verdict(segment(name)?),
            Some(_) => return Err(NotFound::NotFound),
        };
        return read_only(method, AdminEndpoint::View(view));
    }
    let rest = path
        .strip_prefix("/api/v1/flags/")
        .ok_or(NotFound::NotFound)?;
    if let Some((name, verb)) = rest.split_once('/') {
        let flag = segment(name)?;
        return match verb {
            "undo" => {
                let undo = Change::Undo { flag: Some(flag) };
                post(method, AdminEndpoint::Change(undo))
            }
            "rearm" => post(method, AdminEndpoint::Change(Change::Rearm { flag })),
            "preview" => read_only(method, AdminEndpoint::View(View::Preview(flag))),
            _ => Err(NotFound::NotFound),
        };
    }
    let flag = segment(rest)?;
    if reads(method) {
        Ok(AdminEndpoint::Flag(flag))
    } else if *method == Method::PUT {
        Ok(AdminEndpoint::Flip(flag))
    } else if *method == Method::DELETE {
        Ok(AdminEndpoint::Change(Change::Unflip { flag }))
    } else {
        Err(NotFound::Method { allow: WRITE })
    }
}

/// Decodes one path segment.
fn segment(text: &str) -> Result<String, NotFound> {
    let whole = Some(text).filter(|text| !text.is_empty() && !text.contains('/'));
    let decoded = whole.and_then(|text| decode(text, Plus::Literal).ok());
    decoded.map(Into::into).ok_or(NotFound::NotFound)
}

/// Returns the change of a switch: PUT turns it on, DELETE turns it off.
fn switch(method: &Method, on: Change, off: Change) -> Result<AdminEndpoint, NotFound> {
    match *method {
        Method::PUT => Ok(AdminEndpoint::Change(on)),
        Method::DELETE => Ok(AdminEndpoint::Change(off)),
        _ => Err(NotFound::Method { allow: SWITCH }),
    }
}

fn post(method: &Method, target: AdminEndpoint) -> Result<AdminEndpoint, NotFound> {
    if *method == Method::POST {
        Ok(target)
    } else {
        Err(NotFound::Method { allow: POST })
    }
}

/// Returns the endpoint of `explain`, which takes a call as a query or a body.
fn ask(method: &Method) -> Result<AdminEndpoint, NotFound> {
    match *method {
        Method::GET | Method::HEAD => Ok(AdminEndpoint::ExplainQuery),
        Method::POST => Ok(AdminEndpoint::ExplainBody),
        _ => Err(NotFound::Method { allow: ASK }),
    }
}

/// Returns the endpoint of mismatches, which can be read and deleted.
fn mismatches_endpoint(method: &Method) -> Result<AdminEndpoint, NotFound> {
    match *method {
        Method::GET | Method::HEAD => Ok(AdminEndpoint::Mismatches),
        Method::DELETE => Ok(AdminEndpoint::ForgetMismatches),
        _ => Err(NotFound::Method { allow: KEPT }),
    }
}

/// Returns the endpoint of the recording: PUT starts one, DELETE stops it.
fn recording(method: &Method) -> Result<AdminEndpoint, NotFound> {
    match *method {
        Method::GET | Method::HEAD => Ok(AdminEndpoint::Recording),
        Method::PUT => Ok(AdminEndpoint::Record),
        Method::DELETE => Ok(AdminEndpoint::StopRecording),
        _ => Err(NotFound::Method { allow: WRITE }),
    }
}

/// Returns true for GET and HEAD; the HTTP server omits the body of a HEAD.
fn reads(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD
}

#[cfg(test)]
mod tests {
    use super::AdminEndpoint as Endpoint;
    use super::*;

    #[test]
    fn paths_and_methods_select_an_endpoint() {
        let name = || "ios-first".to_owned();
        let cases = [
            (Method::GET, "/healthz", Ok(Endpoint::Health)),
            (Method::HEAD, "/metrics", Ok(Endpoint::Metrics)),
            (Method::GET, "/readyz", Ok(Endpoint::Readiness)),
            (Method::GET, "/api/v1/plan", Ok(Endpoint::Plan)),
            (Method::GET, "/api/v1/usage", Ok(Endpoint::Usage)),
            (Method::GET, "/api/v1/flags", Ok(Endpoint::Flags)),
            (Method::GET, "/api/v1/mismatches", Ok(Endpoint::Mismatches)),
            (
                Method::DELETE,
                "/api/v1/mismatches",
                Ok(Endpoint::ForgetMismatches),
            ),
            (
                Method::POST,
                "/api/v1/mismatches",
                Err(NotFound::Method { allow: KEPT }),
            ),
            (
                Method::GET,
                "/api/v1/flags/ios-first",
                Ok(Endpoint::Flag(name())),
            ),
            (
                Method::PUT,
                "/api/v1/flags/ios%2Dfirst",
                Ok(Endpoint::Flip(name())),
            ),
            (
                Method::DELETE,
                "/api/v1/flags/ios-first",
                Ok(Endpoint::Change(Change::Unflip { flag: name() })),
            ),
            (
                Method::GET,
                "/api/v1/flags/a%2Fb+c",
                Ok(Endpoint::Flag("a/b+c".to_owned())),
            ),
        ];
        for (method, path, expected) in cases {
            assert_eq!(parse(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn other_paths_and_methods_are_refused() {
        let cases = [
            (
                Method::POST,
                "/healthz",
                Err(NotFound::Method { allow: READ }),
            ),
            (
                Method::PUT,
                "/api/v1/flags",
                Err(NotFound::Method { allow: READ }),
            ),
            (
                Method::PATCH,
                "/api/v1/flags/a",
                Err(NotFound::Method { allow: WRITE }),
            ),
            (Method::POST, "/", Err(NotFound::Method { allow: READ })),
            (Method::GET, "/console", Err(NotFound::NotFound)),
            (Method::GET, "/api/v1/routes/a/b", Err(NotFound::NotFound)),
            (Method::GET, "/healthz/", Err(NotFound::NotFound)),
            (Method::GET, "/api/v1/flags/", Err(NotFound::NotFound)),
            (Method::GET, "/api/v1/flags/a/b", Err(NotFound::NotFound)),
            (Method::GET, "/api/v1/flags/%zz", Err(NotFound::NotFound)),
            (Method::POST, "/api/v2/flags", Err(NotFound::NotFound)),
        ];
        for (method, path, expected) in cases {
            assert_eq!(parse(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn what_needs_no_body_is_a_change() {
        let cases = [
            (
                Method::POST,
                "/api/v1/flags/ios-first/undo",
                Ok(Endpoint::Change(Change::Undo {
                    flag: Some("ios-first".to_owned()),
                })),
            ),
            (
                Method::POST,
                "/api/v1/flags/ios%2Dfirst/rearm",
                Ok(Endpoint::Change(Change::Rearm {
                    flag: "ios-first".to_owned(),
                })),
            ),
            (
                Method::POST,
                "/api/v1/undo",
                Ok(Endpoint::Change(Change::Undo { flag: None })),
            ),
            (
                Method::PUT,
                "/api/v1/kill",
                Ok(Endpoint::Change(Change::Kill)),
            ),
            (
                Method::DELETE,
                "/api/v1/kill",
                Ok(Endpoint::Change(Change::Revive)),
            ),
            (
                Method::PUT,
                "/api/v1/called-off/items.read",
                Ok(Endpoint::Change(Change::CallOff {
                    route: "items.read".to_owned(),
                })),
            ),
            (Method::POST, "/api/v1/reload", Ok(Endpoint::Reload)),
            (
                Method::GET,
                "/api/v1/reload",
                Err(NotFound::Method { allow: POST }),
            ),
            (Method::GET, "/api/v1/history", Ok(Endpoint::History)),
            (
                Method::GET,
                "/api/v1/kill",
                Err(NotFound::Method { allow: SWITCH }),
            ),
            (
                Method::GET,
                "/api/v1/flags/a/undo",
                Err(NotFound::Method { allow: POST }),
            ),
        ];
        for (method, path, expected) in cases {
            assert_eq!(parse(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn the_document_of_the_api_names_every_path_with_its_methods_and_no_other() {
        let document: serde_json::Value =
            serde_json::from_str(crate::server::admin::response::API).unwrap();
        let methods = [
            Method::GET,
            Method::PUT,
            Method::POST,
            Method::DELETE,
            Method::PATCH,
        ];
        let mut paths = 0;
        for (path, operations) in document["paths"].as_object().unwrap() {
            let real = path.replace("{name}", "a").replace("{route}", "a");
            for method in &methods {
                let documented = operations.get(method.as_str().to_ascii_lowercase());
                assert_eq!(
                    parse(method, &real).is_ok(),
                    documented.is_some(),
                    "{method} {path}"
                );
            }
            paths += 1;
        }
        // Every path of the module's own table under `/api` and `/ofrep`.
        let table = include_str!("../admin.rs");
        let is_path = |line: &&str| line.contains(" /api/v1/") || line.contains(" /ofrep/v1/");
        let listed = table.lines().filter(is_path);
        // `…/rearm` stands behind `…/undo`, `…/verdict` behind `/routes/{route}`, `…/{key}` behind `/flags`.
        let also_listed = 3;
        assert_eq!(paths, listed.count() + also_listed);
    }

    #[test]
    fn the_document_of_the_api_has_the_statuses_that_any_request_can_get() {
        let document: serde_json::Value =
            serde_json::from_str(crate::server::admin::response::API).unwrap();
        for (path, operations) in document["paths"].as_object().unwrap() {
            let operations = operations.as_object().unwrap().iter();
            for (method, operation) in operations.filter(|(name, _)| *name != "parameters") {
                let responses = &operation["responses"];
                let any = ["200", "400", "401", "403", "503"];
                // What may have a body may have one that is late, too large or of another type.
                let written: &[&str] = match method.as_str() {
                    "get" => &[],
                    _ => &["408", "413", "415"],
                };
                for status in any.iter().chain(written) {
                    let known = responses.get(status).is_some();
                    assert!(known, "{method} {path}: {status}");
                }
                let unavailable = responses["503"]["$ref"].as_str().unwrap();
                let unavailable = unavailable.trim_start_matches('#');
                let says = &document.pointer(unavailable).unwrap()["description"];
                let says = says.as_str().unwrap();
                let asks = ["/explain", "/mismatches", "/recording", "/reload"];
                let throws = path.ends_with("/kill") && method == "put";
                let reads = path.starts_with("/ofrep/");
                let asks = reads || asks.iter().any(|end| path.ends_with(end));
                let stores = method != "get" && !throws && !asks;
                assert_eq!(
                    says.contains("could not be stored"),
                    stores,
                    "{method} {path}"
                );
            }
        }
    }

    #[test]
    fn the_routes_have_a_document_for_each_side() {
        for (path, side) in [
            ("/api/v1/openapi.json", Side::Rest),
            ("/api/v1/openrpc.json", Side::Rpc),
        ] {
            for method in [Method::GET, Method::HEAD] {
                assert_eq!(parse(&method, path), Ok(Endpoint::Document(side)), "{path}");
            }
            let lost = NotFound::Method { allow: READ };
            assert_eq!(parse(&Method::PUT, path), Err(lost), "{path}");
        }
    }

    #[test]
    fn only_paths_under_api_are_the_api() {
        for path in ["/api", "/api/", "/api/v1/flags", "/api/v2"] {
            assert!(needs_token(path), "{path}");
        }
        for path in ["/healthz", "/apis", "/"] {
            assert!(!needs_token(path), "{path}");
        }
    }
}
