//! Any list of tools becomes routes that can be written, or is refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::import::check_any_list(data));
