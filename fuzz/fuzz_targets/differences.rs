#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_oracles::compare::differences_of_texts(data));
