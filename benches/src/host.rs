//! Where and of what a figure was taken.

use std::process::Command;

/// The commit of the checkout, `+` appended if it has changes; `unknown` outside of one.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(args)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string())
    };
    let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) else {
        return "unknown".into();
    };
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"]).as_deref() == Some("");
    format!("{commit}{}", if is_clean { "" } else { "+" })
}

/// The processor's name and how many the machine has, as `AMD EPYC x 2`.
pub(crate) fn host() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1))
        .unwrap_or("unknown processor");
    let count = info
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    format!("{model} x {count}")
}

/// How many processors this process may use.
pub fn processors() -> u32 {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(available).unwrap_or(u32::MAX)
}

/// The machine-wide monotonic clock, comparable between the processes of one host.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Ties this process to one processor, by its rank.
///
/// # Errors
/// The system's reason.
pub fn pin(rank: u32) -> std::io::Result<()> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let usable: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&processor| allowed.is_set(processor))
        .collect();
    let mut own = rustix::thread::CpuSet::new();
    own.set(usable[rank as usize % usable.len()]);
    rustix::thread::sched_setaffinity(None, &own)?;
    Ok(())
}
