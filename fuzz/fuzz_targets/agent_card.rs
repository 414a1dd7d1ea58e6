//! Any bytes are read as the agent card of an A2A server, or left as they are.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::agent_card::check_any_card(data));
