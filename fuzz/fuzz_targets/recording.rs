//! The calls of a recording do not depend on how it is cut, and are written as they were read.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_recording::recording::check_any_cut(data));
