//! OFREP, the OpenFeature Remote Evaluation Protocol: the flags of a plan as evaluations for applications, and the flags
//! of another server as a source of stages.
//!
//! ```text
//! stage:ROUTE   string   the stage of a call of a route
//! new:ROUTE     boolean  true if the new side serves a call of a route
//! flag:NAME     object   the stage and the percentage of a flag in force
//! ```
//!
//! Law: `stage:ROUTE` and `new:ROUTE` have the result of [`crate::routing::decide`] for the same caller, route and side.
//!
//! Used by `app::control`, `server::admin` and `store`.

mod context;
mod evaluate;
mod pace;
mod source;

pub use context::{EvaluationContext, EvaluationFault};
pub use evaluate::{Evaluated, EvaluatedValue, EvaluationReason, Failed, evaluate, evaluate_all};
pub use pace::{poll_delay, retry_after};
pub use source::{MOST_SOURCED, ResponseFault, check_any_response, read_sourced};

/// Reads any bytes as a request: they are a context, or refused with a known code. For fuzzing.
///
/// # Panics
/// If a law does not hold.
pub fn check_any_request(data: &[u8]) {
    match EvaluationContext::parse(data) {
        Ok(context) => {
            let again = context.to_json().to_string();
            let again = EvaluationContext::parse(again.as_bytes());
            assert_eq!(again, Ok(context), "a written context reads otherwise");
        }
        Err(fault) => assert!(
            matches!(
                fault,
                EvaluationFault::Parse(_) | EvaluationFault::Context(_)
            ),
            "{fault}"
        ),
    }
}

#[cfg(test)]
mod tests;
