//! The wire inspector's verdict does not depend on how its input is cut.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_transport::wire::check_any_cut(data));
