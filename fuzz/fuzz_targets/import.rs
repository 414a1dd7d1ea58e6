//! Any bytes are refused, or drafted as routes and as tools.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::import::check_any_document(data));
