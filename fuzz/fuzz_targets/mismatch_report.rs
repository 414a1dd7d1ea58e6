//! Any bytes are refused, or become proposals of outcome rows, each on one line.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::proposal::check_any_report(data));
