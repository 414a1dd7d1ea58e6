//! Explanations by a running process, which include flag changes, guard trips and the kill switch.
//!
//! They are printed like explanations from files.
//!
//! Used by `explain`.

use std::process::ExitCode;

use http::Method;
use serde_json::{Map, Value, json};

use super::arguments::ExplainArguments;
use super::explained::Explained;
use super::http_file::HttpFileRequest;
use super::input;
use super::input_error::InputError;
use super::output::{print, unreadable};
use crate::cli::admin::{AdminArguments, AdminClient, AdminFault, AdminRequest};
use crate::cli::command_error::CommandError;

/// The admin path of explanations.
const PATH: &str = "/api/v1/explain";

pub(super) fn explain(arguments: &ExplainArguments, url: &str) -> Result<ExitCode, CommandError> {
    let questions = match questions(arguments) {
        Ok(questions) => questions,
        Err(error) => return Ok(unreadable(&error)?),
    };
    let admin = AdminClient::new(&AdminArguments::at(url, arguments.token_file.clone()))?;
    let mut explained = Vec::new();
    for (name, question) in questions {
        let answer = admin.body(&AdminRequest {
            method: Method::POST,
            path: PATH,
            body: Some(question),
            tag: None,
        })?;
        // Values keep their bytes.
        let answers: Vec<Explained> =
            serde_json::from_slice(&answer).map_err(|_| AdminFault::NoJson)?;
        let of = answers
            .into_iter()
            .flat_map(|one| one.explanations)
            .collect();
        explained.push(Explained {
            name,
            explanations: of,
        });
    }
    print(arguments.format, &explained)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the name of each request, with the query about it.
fn questions(arguments: &ExplainArguments) -> Result<Vec<(Option<String>, Value)>, InputError> {
    let input = input::read(arguments, None)?;
    // Only the process knows the default RPC path.
    let is_placed = arguments.url.is_some() || arguments.http.is_some() || arguments.path.is_some();
    let requests = input.requests.into_iter();
    requests
        .map(|request| {
            let mut question = question(&request)?;
            if is_placed {
                question["target"] = json!(request.target.to_string());
            }
            if let Some(from) = arguments.from {
                question["from"] = json!(from);
            }
            Ok((request.name, question))
        })
        .collect()
}

fn question(request: &HttpFileRequest) -> Result<Value, InputError> {
    let no_text = |what: &str| InputError::Argument(format!("{what} is not text"));
    let mut headers = Map::new();
    for name in request.headers.keys() {
        let values = request.headers.get_all(name).iter();
        let values = values.map(|value| value.to_str().map_err(|_| no_text("a header")));
        let values: Vec<&str> = values.collect::<Result<_, _>>()?;
        headers.insert(name.to_string(), json!(values));
    }
    let body = std::str::from_utf8(&request.body).map_err(|_| no_text("the body"))?;
    Ok(json!({ "method": request.method.as_str(), "headers": headers, "body": body }))
}
