//! A query has at most one message of an old dialect, and a written message is read again.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::route::check_any_query(data));
