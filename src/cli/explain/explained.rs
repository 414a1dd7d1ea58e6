//! Explained requests. Used by `explain`.

use serde::{Deserialize, Serialize};

use dualgauge_model::explain::Explanation;

/// One request of the input, with the explanation of each call in it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Explained {
    /// Its name in a `###` line.
    pub(super) name: Option<String>,
    pub(super) explanations: Vec<Explanation>,
}
