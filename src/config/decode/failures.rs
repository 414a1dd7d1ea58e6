//! `rpc.failure_codes`: the codes of the proxy's own failures. Used by `decode::rpc`.

use std::ops::RangeInclusive;

use crate::config::key::{Key, NamedValues};
use crate::config::kind::{Kind, whole};
use crate::config::problem::nearest;
use crate::config::table_reader::{Shape, Table};
use dualgauge_model::failure::{FailureCodes, Reason};

/// A code.
pub(super) const CODE: Kind<i32> = whole(-1_000_000, 1_000_000);

/// The number of codes in the block.
const BLOCK: i32 = 100;

/// Codes that are already defined, with their owner.
const RESERVED: [(RangeInclusive<i32>, &str); 4] = [
    (-32700..=-32700, "JSON-RPC itself"),
    (-32603..=-32600, "JSON-RPC itself"),
    (-32022..=-32020, "MCP"),
    (-31499..=-31400, "the statuses of REST servers"),
];

/// The starts of a block that overlaps none of them.
const ALLOWED: &str = "write -32701 or less, -32500 to -32023, -31920 to -31500, or -31300 or more; leave it out for -31000";

/// The code that several reasons shared in earlier versions, and may share again.
const SHARED: i32 = -32600;

/// Decodes the codes: a number moves the block, a table sets the code of each reason that it names.
pub(super) fn codes(
    table: &mut Table<'_>,
    base: &Key<i32>,
    by_reason: &NamedValues<i32>,
) -> Option<FailureCodes> {
    match table.shape(base.name) {
        Shape::Absent => Some(FailureCodes::default()),
        Shape::Value => moved(table, base),
        Shape::Table => set(table, by_reason),
    }
}

fn moved(table: &mut Table<'_>, base: &Key<i32>) -> Option<FailureCodes> {
    let base = table.get(base)?;
    let last = base.value - (BLOCK - 1);
    let overlaps = |(reserved, _): &&(RangeInclusive<i32>, &str)| {
        base.value >= *reserved.start() && last <= *reserved.end()
    };
    if let Some((_, whose)) = RESERVED.iter().find(overlaps) {
        let what = format!(
            "the codes from {} to {last} overlap those of {whose}",
            base.value
        );
        table.add(base.problem(what).hint(ALLOWED));
        return None;
    }
    Some(FailureCodes::moved(base.value))
}

fn set(table: &mut Table<'_>, by_reason: &NamedValues<i32>) -> Option<FailureCodes> {
    let mut codes = Vec::new();
    for (name, code) in table.named_values(by_reason)? {
        let labelled = |reason: &Reason| reason.row().label == name.value;
        match Reason::ALL.into_iter().find(labelled) {
            Some(reason) => codes.push((reason, code)),
            None => {
                let labels = Reason::ALL.map(|reason| reason.row().label);
                let near = nearest(&name.value, labels);
                let problem = name.problem(format!(
                    "there is no failure `{}`; write a reason from the table of failures",
                    name.value
                ));
                table.add(match near {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")),
                    None => problem,
                });
            }
        }
    }
    for (reason, code) in &codes {
        let is_set = |other: &Reason| codes.iter().any(|(one, _)| one == other);
        let has_code = |other: &Reason| other.row().code == code.value && !is_set(other);
        let is_default = reason.row().code == code.value;
        if is_default || code.value == SHARED {
            continue;
        }
        if let Some(other) = Reason::ALL.into_iter().find(has_code) {
            let label = other.row().label;
            let what = format!("{} is already the code of `{label}`", code.value);
            let hint = format!("write another code, or set that of `{label}` as well");
            table.add(code.problem(what).hint(hint));
        }
    }
    let codes = codes.into_iter().map(|(reason, code)| (reason, code.value));
    Some(FailureCodes::set(codes.collect()))
}
