//! JSON as text: validated and sliced, never rebuilt.
//!
//! A [`Json`] is the bytes of one valid JSON value (RFC 8259) within the nesting limit. Its parts are slices of the
//! same bytes, so a value that no rule opens keeps its number text, escapes, member order and duplicate keys. Laws: a
//! text is accepted exactly when `serde_json` accepts its grammar (checked against the JSONTestSuite); lone surrogates
//! and `1e400` pass unopened.

mod duplicate_names;
mod equality;
mod fault;
mod index;
mod inline_bytes;
mod kind;
mod letter_case;
mod members;
mod simd;
mod string;
mod trusted_scan;
mod validator;
mod value;

pub use fault::{FaultKind, JsonFault};
pub use index::{JsonIndex, Spelled, Value};
pub(crate) use inline_bytes::InlineBuffer;
pub use kind::{JsonKind, kind_of};
pub use letter_case::same_ignoring_case;
pub use members::{OpenFault, OpenMember};
pub(crate) use simd::all_plain;
pub use string::{LoneSurrogate, decode, encode};
pub use trusted_scan::{Elements, Members, Span, StringForm, elements};
pub use validator::{MemberSpan, is_integer, is_number, scan_array, scan_object, scan_value};
pub use value::{BYTE_ORDER_MARK, Json, text_of, unmarked};

#[cfg(test)]
mod tests;
