//! Ctrl-C: the first asks the job to stop at the next batch, the second ends the program at once. Either way nothing half
//! done stays, but for work that can be resumed.

use nearsift_batch::Interrupt;

/// From now on Ctrl-C stops a job. Where no handler can be set, the system's default ends the program.
pub fn listen(interrupt: &Interrupt) {
    let interrupt = interrupt.clone();
    let _ = ctrlc::set_handler(move || {
        if interrupt.is_requested() {
            interrupt.discard();
            std::process::exit(130);
        }
        interrupt.request();
    });
}
