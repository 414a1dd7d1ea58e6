//! Local replies to frames: a small route table with one outcome each and without an upstream.
//!
//! Used by `compile::local`.

use crate::config::compile::mcp_server_info;
use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{LocalWord, RawAnswer, RawConfig, RawLocalCall};
use dualgauge_model::outcome::{RestReplySource, RowOrder, RowSource, RpcReplySource};
use dualgauge_model::route::{Extra, RouteSource, RouteTable, parse_route};
use dualgauge_patterns::pattern::SourceTree;

/// The message about `answer = { frame = ... }` for another kind of call.
pub(super) const MISPLACED: &str =
    "`frame` answers frames; write `frame = { ... }` in place of `rest` or `rpc`";

/// Compiles the local replies to frames.
pub(super) fn compile(raw: &RawConfig, problems: &mut Vec<Problem>) -> RouteTable {
    let (mut frames, mut routes) = (Vec::new(), Vec::new());
    for (place, local) in raw.locals.iter().enumerate() {
        let RawLocalCall::Frame(frame) = &local.call else {
            continue;
        };
        mcp_server_info::check_keys(local, problems);
        let Some(answer) = answer(&local.answer, problems) else {
            continue;
        };
        match parse_route(source(place, frame, &local.answer.key, answer)) {
            Ok(route) => {
                frames.push(frame);
                routes.push(route);
            }
            Err(errors) => {
                let of = |key: &str| match key.starts_with(&local.answer.key) {
                    true => &local.answer.place,
                    false => &frame.place,
                };
                problems.extend(errors.into_iter().map(|error| {
                    let found = Spanned {
                        value: (),
                        place: of(&error.key).clone(),
                        key: error.key,
                    };
                    found.problem(error.what)
                }));
            }
        }
    }
    RouteTable::build(routes).unwrap_or_else(|errors| {
        let errors = errors.into_iter();
        problems.extend(errors.map(|error| frames[error.route].problem(error.what)));
        RouteTable::default()
    })
}

/// Returns the frame of a reply; `None` for silence.
fn answer(answer: &Spanned<RawAnswer>, problems: &mut Vec<Problem>) -> Option<Option<SourceTree>> {
    match &answer.value {
        RawAnswer::Frame(frame) => Some(Some(frame.clone())),
        RawAnswer::Word(LocalWord::Nothing) => Some(None),
        RawAnswer::Word(_) | RawAnswer::Result(_) | RawAnswer::Error(_) | RawAnswer::Reply(_) => {
            let message = "the answer to a frame is `{ frame = { ... } }` or \"none\"";
            problems.push(answer.problem(message));
            None
        }
    }
}

fn source(
    place: usize,
    frame: &Spanned<SourceTree>,
    key: &str,
    answer: Option<SourceTree>,
) -> RouteSource {
    let row = RowSource {
        key: key.to_owned(),
        origin: 0,
        order: RowOrder::default(),
        rest: RestReplySource::frame(answer),
        rpc: RpcReplySource::Result(SourceTree::Table(Vec::new())),
        lossy: None,
    };
    RouteSource {
        key: frame.key.trim_end_matches(".frame").to_owned(),
        name: format!("local.{place}"),
        // A method that no client calls.
        rpc: format!("local.{place}"),
        extra: Some(Extra::Drop),
        rows: vec![row],
        ..RouteSource::of_frame(frame.value.clone())
    }
}
