//! What the query of a read says.

use http::StatusCode;

use super::problem::Problem;
use crate::domain::lifecycle::parse_idle;
use crate::domain::percent::{Plus, decode};
use crate::domain::rollout::Glob;

/// How long nobody may have called a route that may be deleted, where nobody says otherwise: 30 days.
const IDLE: u64 = 30 * 86_400;

/// Reads `route=GLOB&idle=30d`; each may be absent, and neither given twice.
pub(super) fn usage(query: Option<&str>) -> Result<(Glob, u64), Problem> {
    let (mut route, mut idle) = (None, None);
    for pair in query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decode(value, Plus::Space).map_err(|error| wrong(error.to_string()))?;
        let twice = match name {
            "route" => route.replace(Glob::new(value)).is_some(),
            "idle" => idle
                .replace(parse_idle(&value).ok_or_else(no_time)?)
                .is_some(),
            _ => {
                return Err(wrong(
                    "unknown parameter; known: `route`, `idle`".to_owned(),
                ));
            }
        };
        if twice {
            return Err(wrong(format!("`{name}` is given twice")));
        }
    }
    Ok((route.unwrap_or(Glob::new("*")), idle.unwrap_or(IDLE)))
}

fn no_time() -> Problem {
    wrong(
        "`idle` is no time; write one such as `30d`, `12h` or `90m`, ten years at most".to_owned(),
    )
}

fn wrong(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_which_routes_and_how_long() {
        let read = |query: &str| {
            let (route, idle) = usage(Some(query)).ok()?;
            Some((route.as_str().to_owned(), idle))
        };
        let said = |route: &str, idle| Some((route.to_owned(), idle));
        assert_eq!(read(""), said("*", IDLE));
        assert_eq!(read("idle=12h"), said("*", 43_200));
        assert_eq!(read("route=agent.%2A&idle=1s"), said("agent.*", 1));
        for wrong in [
            "idle=",
            "idle=0d",
            "idle=30",
            "idle=4000d",
            "idle=1d&idle=1d",
            "since=1",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
