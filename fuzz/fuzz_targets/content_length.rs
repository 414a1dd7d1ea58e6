//! What is read of messages with a length does not depend on how they are cut, and a written message is read again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::content_length::check_any_cut(data));
