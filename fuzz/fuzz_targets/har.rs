//! The calls of a HAR file are written as they were read.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_recording::har::check_any_file(data));
