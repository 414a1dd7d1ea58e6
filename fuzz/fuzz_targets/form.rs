//! Any bytes are read as a form or refused, and a form that was read and written is read as the same object.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::form::check_any_bytes(data));
