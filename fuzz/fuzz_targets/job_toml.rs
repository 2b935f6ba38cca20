#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shoal_fuzz::target("job_toml")(bytes));
