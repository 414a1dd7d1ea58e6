//! Any bytes are read as the response of a source of flags or refused, and a value that was read and written is read as
//! the same one.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::ofrep::check_any_response(data));
