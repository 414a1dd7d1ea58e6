//! Any bytes are refused, or are a pattern that reads what it writes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_patterns::pattern::check_any_notation(data));
