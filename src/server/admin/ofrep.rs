//! OFREP, the OpenFeature Remote Evaluation Protocol: commands that evaluate flags. Used by `admin::command` and
//! `admin::evaluation`.

use bytes::Bytes;
use tokio::sync::oneshot::Sender;

use dualgauge_model::ofrep::{Evaluated, EvaluationFault, Failed};

/// A request for the values of flags.
#[derive(Debug)]
pub enum OfrepCommand {
    /// Returns the value of one flag.
    One {
        /// The key of the flag.
        key: String,
        /// The body of the request.
        body: Bytes,
        /// The value.
        reply: Sender<Result<Evaluated, EvaluationFault>>,
    },
    /// Returns the values of all flags.
    All {
        /// The body of the request.
        body: Bytes,
        /// The values.
        reply: Sender<Result<EvaluatedFlags, EvaluationFault>>,
    },
}

/// The values of all flags, or the reasons why some have none.
pub type EvaluatedFlags = Vec<Result<Evaluated, Failed>>;
