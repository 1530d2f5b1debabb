//! The program `eventdelay`; see `music::tools`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    music::tools::eventdelay()
}
