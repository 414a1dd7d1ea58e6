//! Any line of an access log is a call or a fault.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_recording::access_log::check_any_line(data));
