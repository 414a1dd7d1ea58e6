//! A complete response becomes one event with the same JSON as data.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::response_stream::check_any_complete(data));
