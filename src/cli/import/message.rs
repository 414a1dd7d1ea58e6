//! The JSON-RPC message in a response. Used by `import::command` and `import::discover`.

use serde_json::Value;

use super::json;
use dualgauge_model::import::printable;

/// The longest part of an error that is shown.
const SHOWN: usize = 200;

/// Returns the `error` member of a response, for people.
pub(super) fn error_of(message: &Value) -> Option<String> {
    let error = message.get("error").filter(|error| !error.is_null())?;
    let text = printable(&error.to_string());
    Some(text.chars().take(SHOWN).collect())
}

/// Returns the response in the body: JSON, or the event that contains it.
///
/// # Errors
/// A JSON value beyond the limits of a document.
pub(super) fn message(text: &[u8]) -> Result<Option<Value>, serde_json::Error> {
    let is_answer = |value: &Value| value.get("result").is_some() || value.get("error").is_some();
    let Ok(text) = std::str::from_utf8(text) else {
        return Ok(None);
    };
    match json::parse(text) {
        Ok(value) => return Ok(is_answer(&value).then_some(value)),
        Err(error) if error.is_data() => return Err(error),
        Err(_) => {}
    }
    let text = text.replace("\r\n", "\n");
    for event in text.split("\n\n") {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        let data: Vec<&str> = lines.map(str::trim_start).collect();
        match json::parse(&data.join("\n")) {
            Ok(value) if is_answer(&value) => return Ok(Some(value)),
            Err(error) if error.is_data() => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(None)
}
