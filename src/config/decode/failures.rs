//! `rpc.failure_codes`: the codes of the proxy's own failures.

use crate::config::kind::whole;
use crate::config::problem::nearest;
use crate::config::reader::{Shape, Table};
use crate::domain::failure::{FailureCodes, Reason};

/// The codes that JSON-RPC 2.0 defines, and the room between them.
const DEFINED: std::ops::RangeInclusive<i32> = -32700..=-32600;

/// How many codes the block has.
const BLOCK: i32 = 100;

/// A number moves the block of codes, a table sets the code of each reason that it names.
pub(super) fn codes(table: &mut Table<'_>) -> Option<FailureCodes> {
    const NAME: &str = "failure_codes";
    let number = whole(-1_000_000..=1_000_000);
    match table.shape(NAME) {
        Shape::Absent => Some(FailureCodes::default()),
        Shape::Value => {
            let base = table.get(NAME, number)?;
            let last = base.value - (BLOCK - 1);
            if base.value >= *DEFINED.start() && last <= *DEFINED.end() {
                let message = format!(
                    "the codes from {} to {last} meet those of JSON-RPC itself, -32600 to -32700",
                    base.value
                );
                table.add(base.problem(message).hint("leave it out for -31000"));
                return None;
            }
            Some(FailureCodes::moved(base.value))
        }
        Shape::Table => {
            let mut codes = Vec::new();
            for (name, code) in table.named_values(NAME, number)? {
                let labelled = |reason: &Reason| reason.row().label == name.value;
                match Reason::ALL.into_iter().find(labelled) {
                    Some(reason) => codes.push((reason, code.value)),
                    None => {
                        let labels = Reason::ALL.map(|reason| reason.row().label);
                        let near = nearest(&name.value, labels);
                        let problem = name.problem(format!(
                            "there is no failure `{}`; write a reason of the table of failures",
                            name.value
                        ));
                        table.add(match near {
                            Some(near) => problem.hint(format!("did you mean `{near}`?")),
                            None => problem,
                        });
                    }
                }
            }
            Some(FailureCodes::set(codes))
        }
    }
}
