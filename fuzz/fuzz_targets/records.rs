#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_oracles::records::read_records(data));
