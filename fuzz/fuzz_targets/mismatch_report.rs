//! Any bytes are refused, or become proposals of outcome rows, each on one line of TOML.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let is_toml = |text: &str| toml::from_str::<toml::Table>(text).is_ok();
    dualgauge_model::proposal::check_any_report(data, is_toml);
});
