#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_oracles::substrings::find_repeats(data));
