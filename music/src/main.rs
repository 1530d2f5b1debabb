//! The `music` command; see `music::command`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    music::command::main()
}
