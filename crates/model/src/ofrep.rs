//! OFREP, the OpenFeature Remote Evaluation Protocol: the flags of a plan as evaluations for applications.
//!
//! ```text
//! stage:ROUTE   string   the stage of a call of a route
//! new:ROUTE     boolean  true if the new side serves a call of a route
//! flag:NAME     object   the stage and the percentage of a flag in force
//! ```
//!
//! Law: `stage:ROUTE` and `new:ROUTE` have the result of [`crate::routing::decide`] for the same caller, route and side.
//!
//! Used by `app::control` and `server::admin`.

mod context;
mod evaluate;

pub use context::{EvaluationContext, EvaluationFault};
pub use evaluate::{Evaluated, EvaluatedValue, EvaluationReason, Failed, evaluate, evaluate_all};

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
