//! A message on a socket has one protocol, and keeps its text.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::frame::check_any_message(data));
