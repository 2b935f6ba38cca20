#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shoal_fuzz::target("traces")(bytes));
