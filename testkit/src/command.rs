//! Starting other programs.

use std::process::{Command, Stdio};

/// Runs a command with its output held back, and returns what it wrote to standard output.
///
/// # Errors
/// All that it wrote, when it fails; or why it could not be started.
pub fn quiet(mut command: Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stdout) + &text(&output.stderr))
    }
}
