//! A draft whose routes name the guesses in them. Used by `cli::learn`.

use super::documents::Documents;
use dualgauge_model::import::printable;

/// The beginning of a table of a route.
const ROUTE: &str = "[[route]]";

/// Adds a comment for each guess above its route, and names the command in the head.
pub(super) fn marked(toml: &str, documents: &Documents) -> String {
    let toml = toml.replacen("`dualgauge import`", "`dualgauge learn`", 1);
    let toml = toml.replacen(
        "each `look:` and each `unpaired:`",
        "each `guess:`, `look:` and `unpaired:`",
        1,
    );
    let lines: Vec<&str> = toml.lines().collect();
    let mut text = String::with_capacity(toml.len() * 2);
    for (at, line) in lines.iter().enumerate() {
        if *line == ROUTE {
            for guess in guesses(&lines[at + 1..], documents) {
                text.push_str(&format!("# guess: {}\n", printable(guess)));
            }
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Returns the guesses on the route whose lines begin here.
fn guesses<'d>(lines: &[&str], documents: &'d Documents) -> Vec<&'d str> {
    let own = lines.iter().take_while(|line| **line != ROUTE);
    let value = |key: &str| {
        let mut values = own.clone().filter_map(|line| line.strip_prefix(key));
        let value = values.find_map(|rest| rest.strip_prefix(" = "));
        value.and_then(|value| serde_json::from_str::<String>(value).ok())
    };
    let rest = value("rest").map(|rest| plain(&rest));
    let rest = rest.and_then(|rest| documents.rest_guesses.get(&rest));
    let rpc = value("rpc").and_then(|rpc| documents.rpc_guesses.get(&rpc));
    let found = rest.into_iter().chain(rpc).flatten();
    found.map(String::as_str).collect()
}

/// Returns a REST pattern without its query, and with holes without their types.
fn plain(rest: &str) -> String {
    let path = rest.split('?').next().unwrap_or_default();
    let (mut text, mut skips) = (String::new(), false);
    for c in path.chars() {
        match c {
            ':' => skips = text.rfind('{') > text.rfind('}') || skips,
            '}' => skips = false,
            _ => {}
        }
        if !skips {
            text.push(c);
        }
    }
    text
}
