//! Flags, and the history of their changes, as text for people. Used by `flags`.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns the state after a change: the flag, or everything.
pub(super) fn after(value: &Value) -> String {
    if value.get("flags").is_some() {
        return listed(value);
    }
    table(&[value])
}

pub(super) fn listed(value: &Value) -> String {
    let mut text = String::new();
    if let Some(kill) = value.get("kill").filter(|kill| !kill.is_null()) {
        let _ = writeln!(
            text,
            "KILL SWITCH ON since {} by {}{}: every call passes through whose side has an upstream",
            word(kill, "at"),
            word(kill, "who"),
            because(kill)
        );
        if let Some(error) = value["kill_unstored"].as_str() {
            let _ = writeln!(
                text,
                "  NOT STORED YET: it acts in this process only, and storing it is tried again each second: {error}"
            );
        }
        for route in value["still_translated"].as_array().into_iter().flatten() {
            let _ = writeln!(
                text,
                "  still translated: {}",
                route.as_str().unwrap_or("?")
            );
        }
    }
    let without = value["without_brownouts"].as_array();
    for route in value["called_off"].as_array().into_iter().flatten() {
        let none = match without.is_some_and(|without| without.contains(route)) {
            true => " (it announces none; see `deprecated.brownouts`)",
            false => "",
        };
        let route = route.as_str().unwrap_or("?");
        let _ = writeln!(text, "brownouts called off: {route}{none}");
    }
    let flags: Vec<&Value> = value["flags"].as_array().into_iter().flatten().collect();
    if flags.is_empty() {
        text.push_str("there are no flags; `rollout.flags` names their file\n");
        return text;
    }
    text.push_str(&table(&flags));
    text
}

const COLUMNS: [&str; 8] = [
    "FLAG", "CLIENT", "ROUTE", "SIDE", "STAGE", "PERCENT", "STATE", "TAG",
];

fn table(flags: &[&Value]) -> String {
    let head = COLUMNS.map(str::to_owned);
    let rows: Vec<[String; 8]> = std::iter::once(head)
        .chain(flags.iter().map(|flag| row(flag)))
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = String::new();
    // The header line has no line below it.
    let below = std::iter::once(None).chain(flags.iter().map(|flag| long_reason(flag)));
    for (row, below) in rows.iter().zip(below) {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "{}", line.join("  ").trim_end());
        if let Some(reason) = below {
            let _ = writeln!(text, "  tripped: {reason}");
        }
    }
    text
}

/// Longer reasons of trips would make every row too wide.
const REASON: usize = 24;

fn long_reason(flag: &Value) -> Option<&str> {
    let reason = flag["tripped"]["reason"].as_str()?;
    (reason.chars().count() > REASON).then_some(reason)
}

fn row(flag: &Value) -> [String; 8] {
    [
        word(flag, "name"),
        word(flag, "client"),
        word(flag, "route"),
        flag["side"].as_str().unwrap_or("both").to_owned(),
        stage(flag),
        flag["percent"].to_string(),
        state(flag),
        word(flag, "tag"),
    ]
}

/// Returns the stage of a flag, marked if the flag gives it to no call.
fn stage(flag: &Value) -> String {
    let stage = word(flag, "stage");
    match flag["tripped"].is_object() {
        true => format!("off ({stage})"),
        false => stage,
    }
}

/// Returns the reason for a flag's state.
fn state(flag: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(trip) = flag.get("tripped").filter(|trip| !trip.is_null()) {
        let reason = match long_reason(flag) {
            Some(_) => String::new(),
            None => format!(": {}", word(trip, "reason")),
        };
        parts.push(format!("TRIPPED {}{reason}", word(trip, "at")));
    }
    if let Some(flip) = flag.get("flipped").filter(|flip| !flip.is_null()) {
        parts.push(format!(
            "flipped by {} {}{}",
            word(flip, "who"),
            word(flip, "at"),
            because(flip)
        ));
    }
    if let Some(ramp) = flag.get("ramp").filter(|ramp| !ramp.is_null()) {
        parts.push(format!("ramp step {} of {}", ramp["step"], ramp["steps"]));
    }
    if let Some(ruling) = flag.get("guard").and_then(Value::as_str) {
        let ruling = if ruling == "content" { "ok" } else { ruling };
        parts.push(format!("guard: {ruling}"));
    }
    if parts.is_empty() {
        parts.push("from the flags file".to_owned());
    }
    for (name, fits) in flag["headers"].as_object().into_iter().flatten() {
        parts.push(format!("where {name}: {}", fits.as_str().unwrap_or("?")));
    }
    if let Some(share) = flag.get("holdback").filter(|share| !share.is_null()) {
        parts.push(format!("{share} % held back"));
    }
    parts.join("; ")
}

pub(super) fn history(value: &Value) -> String {
    let mut text = String::new();
    for entry in value.as_array().into_iter().flatten() {
        let by = &entry["by"];
        let what = word(entry, "what");
        let subject = entry["before"]["flag"]["flag"].as_str().unwrap_or("-");
        let undone = if entry["undone"] == true {
            " (undone)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{}  r{}  {what:<9} {subject}  {} -> {}  by {}{}{undone}",
            word(by, "at"),
            entry["revision"],
            left(&entry["before"]),
            left(&entry["after"]),
            word(by, "who"),
            because(by)
        );
    }
    if text.is_empty() {
        text.push_str("nothing was changed yet\n");
    }
    text
}

/// Returns a short form of the state before or after a change.
fn left(left: &Value) -> String {
    if let Some(flag) = left.get("flag") {
        let standing = &flag["standing"];
        let flip = &standing["flip"];
        let mut words = match flip.is_object() {
            true => format!("{} {} %", word(flip, "stage"), word(flip, "percent")),
            false => "file".to_owned(),
        };
        if standing["trip"].is_object() {
            words.push_str(" tripped");
        }
        if let Some(step) = standing["ramp"]["step"].as_u64() {
            words.push_str(&format!(" ramp step {}", step + 1));
        }
        return words;
    }
    if let Some(kill) = left.get("kill") {
        return if kill["kill"].is_null() { "off" } else { "on" }.to_owned();
    }
    left["brownouts"]["called_off"].to_string()
}

fn because(by: &Value) -> String {
    by["why"]
        .as_str()
        .map_or_else(String::new, |why| format!(" ({why})"))
}

fn word(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_reason_stands_below_its_row_and_what_narrows_a_flag_is_told() {
        let plain = json!({
            "name": "a", "client": "*", "route": "*", "side": null, "stage": "translate", "percent": 5,
            "tag": "1-ab", "headers": {"x-beta": "1*"}, "holdback": 2.5,
        });
        let mut short = plain.clone();
        short["tripped"] = json!({"at": "2026-02-03T04:05:06.000Z", "reason": "failures"});
        let mut long = plain.clone();
        let reason = "failures: 12 % of 300 calls of the new way, 0.1 % of the old";
        long["tripped"] = json!({"at": "2026-02-03T04:05:06.000Z", "reason": reason});
        let text = table(&[&plain, &short, &long]);
        let expected = "\
FLAG  CLIENT  ROUTE  SIDE  STAGE      PERCENT  STATE                                                                           TAG
a     *       *      both  translate  5        from the flags file; where x-beta: 1*; 2.5 % held back                             1-ab
a     *       *      both  off (translate)  5        TRIPPED 2026-02-03T04:05:06.000Z: failures; where x-beta: 1*; 2.5 % held back  1-ab
a     *       *      both  off (translate)  5        TRIPPED 2026-02-03T04:05:06.000Z; where x-beta: 1*; 2.5 % held back            1-ab
  tripped: failures: 12 % of 300 calls of the new way, 0.1 % of the old
";
        let squeezed = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(squeezed(&text), squeezed(expected));
        assert_eq!(text.lines().last(), expected.lines().last());
    }
}
