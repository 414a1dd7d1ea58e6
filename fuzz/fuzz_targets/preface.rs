//! What a PROXY header says does not depend on how it comes, and nothing behind it is taken.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_transport::proxy_protocol::check_any_cut(data));
