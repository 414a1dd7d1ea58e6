//! The rows of the failure table for requests with invalid framing.

use super::Reason;
use dualgauge_transport::wire::Violation;

impl From<Violation> for Reason {
    fn from(violation: Violation) -> Reason {
        match violation {
            Violation::TargetTooLong => Reason::TargetTooLong,
            Violation::HeadTooSlow => Reason::RequestTimeout,
            Violation::HeadTooLarge | Violation::TooManyFields | Violation::TrailersTooLarge => {
                Reason::HeadTooLarge
            }
            Violation::BareLf
            | Violation::BareCr
            | Violation::EmptyLines
            | Violation::Http2Preface
            | Violation::RequestLine
            | Violation::HeadCut
            | Violation::Method
            | Violation::Connect
            | Violation::Version
            | Violation::Target
            | Violation::Fragment
            | Violation::AuthorityDiffers
            | Violation::NoColon
            | Violation::FieldName
            | Violation::SpaceBeforeColon
            | Violation::ObsFold
            | Violation::FieldValue
            | Violation::NoHost
            | Violation::HostRepeated
            | Violation::Host
            | Violation::ContentLength
            | Violation::ContentLengthRepeated
            | Violation::TwoFramings
            | Violation::TransferEncoding
            | Violation::TransferEncodingRepeated
            | Violation::TransferEncodingInHttp10
            | Violation::ChunkSize
            | Violation::ChunkExtension
            | Violation::ChunkExtensionTooLong
            | Violation::ChunkEnd
            | Violation::TrailerForbidden => Reason::MalformedHttp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Blame;

    #[test]
    fn every_violation_is_the_clients_fault() {
        for violation in Violation::ALL {
            assert_eq!(Reason::from(violation).row().blame, Blame::Client);
        }
        assert_eq!(Reason::from(Violation::TargetTooLong).row().status, 414);
        assert_eq!(Reason::from(Violation::TooManyFields).row().status, 431);
    }
}
