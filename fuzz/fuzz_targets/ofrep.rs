//! Any bytes are read as a request of OFREP or refused, and a context that was read and written is read as the same one.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::ofrep::check_any_request(data));
