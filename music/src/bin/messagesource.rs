//! The program `messagesource`; see `music::tools`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    music::tools::messagesource()
}
