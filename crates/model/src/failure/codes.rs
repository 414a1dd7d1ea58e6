//! Configured failure codes: a shifted block of the proxy's own codes, or single reasons.
//!
//! Used by `config`, `model` and `gateway`.

use std::ops::RangeInclusive;

use super::Reason;

/// The default block of the proxy's own codes.
const BLOCK: RangeInclusive<i32> = -31099..=-31000;

/// The codes of the proxy's failures for RPC clients. The default is the failure table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailureCodes {
    /// The shift of the block.
    by: i32,
    /// The codes that are set individually.
    set: Vec<(Reason, i32)>,
}

impl FailureCodes {
    /// Returns the codes with a block that begins at `base` instead of -31000, and goes down.
    #[must_use]
    pub const fn moved(base: i32) -> FailureCodes {
        FailureCodes {
            by: base - *BLOCK.end(),
            set: Vec::new(),
        }
    }

    /// Returns the codes with some set individually.
    #[must_use]
    pub const fn set(codes: Vec<(Reason, i32)>) -> FailureCodes {
        FailureCodes { by: 0, set: codes }
    }

    /// Returns the code of a reason.
    #[must_use]
    pub fn of(&self, reason: Reason) -> i32 {
        let custom = self.set.iter().find(|(one, _)| *one == reason);
        let code = reason.row().code;
        match custom {
            Some((_, code)) => *code,
            None if BLOCK.contains(&code) => code + self.by,
            None => code,
        }
    }

    /// Returns the reason with this code, if it is one of the proxy's codes.
    #[must_use]
    pub fn reason_of(&self, code: i64) -> Option<Reason> {
        let has_code = |reason: &Reason| {
            BLOCK.contains(&reason.row().code) && i64::from(self.of(*reason)) == code
        };
        Reason::ALL.into_iter().find(has_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_moves_and_the_codes_of_json_rpc_and_mcp_stay() {
        let moved = FailureCodes::moved(-40_000);
        assert_eq!(moved.of(Reason::UpstreamTimeout), -40_022);
        assert_eq!(moved.of(Reason::MalformedJson), -32_700);
        assert_eq!(moved.of(Reason::HeaderMismatch), -32_020);
        assert_eq!(moved.reason_of(-40_022), Some(Reason::UpstreamTimeout));
        assert_eq!(moved.reason_of(-31_022), None);
        assert_eq!(moved.reason_of(-32_700), None);
    }

    #[test]
    fn a_reason_has_the_code_that_is_set_for_it() {
        let set = FailureCodes::set(vec![(Reason::UpstreamTimeout, -32_002)]);
        assert_eq!(set.of(Reason::UpstreamTimeout), -32_002);
        assert_eq!(set.of(Reason::UpstreamCut), -31_023);
        assert_eq!(set.reason_of(-32_002), Some(Reason::UpstreamTimeout));
    }
}
