//! Any bytes are read as protected resource metadata, as a challenge and as a well-known path, or left as they are.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::mcp::check_any_metadata(data));
