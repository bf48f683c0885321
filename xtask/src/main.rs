//! Developer commands.

mod tables_words;

fn main() -> Result<(), String> {
    let mode = match std::env::args().nth(1).as_deref() {
        Some("--check") => tables_words::Mode::Check,
        _ => tables_words::Mode::Write,
    };
    tables_words::run(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")), mode)
}
