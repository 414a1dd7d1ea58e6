//! The translation of a response that streams does not depend on its chunks, and its output has whole events only.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::response_stream::check_any_stream(data));
