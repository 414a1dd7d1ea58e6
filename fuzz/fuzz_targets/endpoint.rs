//! Any bytes are read as an `endpoint` event and as an endpoint, which never leads to another origin.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::mcp::check_any_endpoint(data));
