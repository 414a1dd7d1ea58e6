//! What is read of an event stream does not depend on how it is cut, and nothing of it is lost.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::sse::check_any_cut(data));
