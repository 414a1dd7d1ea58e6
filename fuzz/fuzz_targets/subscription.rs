//! The id and the event of a notification are parts of it, and the call that ends a subscription names the same id.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| dualgauge_model::subscription::check_any_notification(data));
