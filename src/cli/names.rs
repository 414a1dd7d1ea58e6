//! Names of flags and routes as candidates of completions.
//!
//! They come from the file of `--config`; without it, from the running proxy at `--admin`; without one, from the
//! configuration at hand. Errors are not reported: then there are no candidates.
//!
//! Used by `flags`, `mismatches`, `replay`, `routes` and `usage`.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde_json::Value;

use crate::cli::admin::{AdminArguments, AdminClient};
use crate::cli::completions::words;
use crate::config::configuration::Configuration;
use crate::config::load::{Sources, environment};
use dualgauge_model::rollout::Stage;

/// Timeout of a request to the running proxy: a person waits for the candidates.
const LIMIT: Duration = Duration::from_millis(500);
/// The main files that are read without `--config` and without a running proxy.
const AT_HAND: [&str; 2] = ["dualgauge.toml", "/etc/dualgauge/dualgauge.toml"];

/// A name, and a short description.
type Name = (String, String);

/// Returns the names of flags, with their stages.
pub(super) fn flags() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(asked_flags, configured_flags))
}

/// Returns the names of routes, with their REST and RPC sides.
pub(super) fn routes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(asked_routes, configured_routes))
}

/// Returns the stages.
pub(super) fn stages() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let stages = Stage::ALL.iter();
        let stages = stages.map(|stage| CompletionCandidate::new(stage.as_str()));
        stages.collect()
    })
}

fn candidates(
    asked: fn(&AdminClient) -> Option<Vec<Name>>,
    configured: fn(&Configuration) -> Vec<Name>,
) -> Vec<CompletionCandidate> {
    let words = words();
    let of_file = |file: &Path| read(file).map(|configuration| configured(&configuration));
    let names = match option(&words, "--config") {
        Some(file) => of_file(Path::new(&file)),
        None => client(&words)
            .and_then(|client| asked(&client))
            .or_else(|| AT_HAND.iter().find_map(|file| of_file(Path::new(file)))),
    };
    let names = names.unwrap_or_default().into_iter();
    let candidates =
        names.map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into())));
    candidates.collect()
}

/// Returns the last value of an option. bash passes `=` as a word.
fn option(words: &[OsString], name: &str) -> Option<String> {
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.to_str().unwrap_or(""))
        .collect();
    let at = words.iter().rposition(|word| {
        let rest = word.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    let value = match words[at].split_once('=') {
        Some((_, value)) => Some(value),
        None => match words.get(at + 1) {
            Some(&"=") => words.get(at + 2).copied(),
            value => value.copied(),
        },
    };
    value.filter(|value| !value.is_empty()).map(str::to_owned)
}

/// Reads a configuration, also one with problems.
fn read(file: &Path) -> Option<Configuration> {
    let sources = Sources {
        file: Some(file.to_owned()),
        environment: environment(),
        ..Sources::default()
    };
    match Configuration::inspect(&sources) {
        Ok(configuration) => Some(configuration),
        Err(flawed) => flawed.part.map(|part| *part),
    }
}

fn client(words: &[OsString]) -> Option<AdminClient> {
    let url = option(words, "--admin");
    let url = url.unwrap_or_else(|| AdminArguments::DEFAULT.to_owned());
    let token = option(words, "--token-file").map(Into::into);
    let client = AdminClient::new(&AdminArguments::at(&url, token)).ok()?;
    Some(client.within(LIMIT))
}

fn configured_flags(configuration: &Configuration) -> Vec<Name> {
    let flags = configuration.flags.iter();
    let names = flags.map(|flag| {
        let stage = flag.stage.value.as_str();
        (flag.name.value.clone(), stage.to_owned())
    });
    names.collect()
}

fn configured_routes(configuration: &Configuration) -> Vec<Name> {
    let routes = configuration.plan.routes.routes().iter();
    let names = routes.map(|route| (route.name.clone(), sides(&route.rest, &route.rpc)));
    names.collect()
}

fn asked_flags(client: &AdminClient) -> Option<Vec<Name>> {
    let answer = client.get("/api/v1/flags").ok()?;
    let flags = answer["flags"].as_array()?.iter();
    Some(
        flags
            .map(|flag| (text(flag, "name"), text(flag, "stage")))
            .collect(),
    )
}

fn asked_routes(client: &AdminClient) -> Option<Vec<Name>> {
    let answer = client.get("/api/v1/plan").ok()?;
    let routes = answer["routes"].as_array()?.iter();
    let names = routes.map(|route| {
        let sides = sides(&text(route, "rest"), &text(route, "rpc"));
        (text(route, "name"), sides)
    });
    Some(names.collect())
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn sides(rest: &str, rpc: &str) -> String {
    format!("{rest}, {rpc}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_an_option_is_found_in_each_form() {
        let found = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
            option(&words, "--config")
        };
        let value = Some("a.toml".to_owned());
        assert_eq!(found("dualgauge replay --config a.toml --only i"), value);
        assert_eq!(found("dualgauge replay --config=a.toml --only i"), value);
        assert_eq!(found("dualgauge replay --config = a.toml --only i"), value);
        assert_eq!(found("dualgauge replay --config"), None);
        assert_eq!(found("dualgauge replay --configs a.toml"), None);
    }
}
