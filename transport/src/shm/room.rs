//! How much memory a segment may take, asked before it is taken.
//!
//! Linux hands out more memory than it has and kills somebody later. A segment is allocated in full
//! at start-up, so asking first turns a heap that is too large into an error line.

use std::path::Path;

use super::cgroup::{Read, Version, folders};

/// Bytes that can be allocated without swapping or running into a limit of a control group.
pub(super) fn available_bytes(read: Read<'_>) -> u64 {
    let groups = folders(read, "memory");
    let limited = groups
        .iter()
        .filter_map(|(version, folder)| group_room(read, *version, folder))
        .min();
    let free = meminfo(read).unwrap_or(u64::MAX);
    free.min(limited.unwrap_or(u64::MAX))
}

fn meminfo(read: Read<'_>) -> Option<u64> {
    let text = read(Path::new("/proc/meminfo"))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn group_room(read: Read<'_>, version: Version, folder: &Path) -> Option<u64> {
    let [limit, usage, inactive, active] = match version {
        Version::V1 => [
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
            "total_active_file",
        ],
        Version::V2 => [
            "memory.max",
            "memory.current",
            "inactive_file",
            "active_file",
        ],
    };
    let number = |name: &str| read(&folder.join(name))?.trim().parse::<u64>().ok();
    let limit = number(limit)?; // "max" is no number and no limit
    let used = number(usage)?;
    let stat = read(&folder.join("memory.stat")).unwrap_or_default();
    let cached: u64 = stat
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| *name == inactive || *name == active)
        .filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
        .sum();
    // Cached files give way to a segment; everything else stays.
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::super::cgroup::tests::machine;
    use super::*;

    #[test]
    fn the_tightest_limit_counts_and_cached_files_give_way() {
        let files = [
            (
                "/proc/meminfo",
                "MemTotal: 9 kB\nMemAvailable:    4096 kB\n",
            ),
            ("/proc/self/cgroup", "0::/a\n"),
            (
                "/proc/self/mountinfo",
                "31 20 0:2 / /cg rw - cgroup2 cgroup2 rw\n",
            ),
            ("/cg/a/memory.max", "max\n"),
            ("/cg/a/memory.current", "500\n"),
            ("/cg/memory.max", "1000\n"),
            ("/cg/memory.current", "700\n"),
            (
                "/cg/memory.stat",
                "anon 400\ninactive_file 200\nactive_file 50\n",
            ),
        ];

        assert_eq!(available_bytes(&machine(&files)), 550);
    }

    #[test]
    fn groups_of_the_first_version_are_read_too() {
        let files = [
            ("/proc/meminfo", "MemAvailable: 4096 kB\n"),
            ("/proc/self/cgroup", "4:memory:/\n"),
            (
                "/proc/self/mountinfo",
                "30 20 0:1 / /cg rw - cgroup cgroup rw,memory\n",
            ),
            ("/cg/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/cg/memory.usage_in_bytes", "700\n"),
        ];

        assert_eq!(available_bytes(&machine(&files)), 4096 * 1024);
    }

    #[test]
    fn a_machine_that_tells_nothing_limits_nothing() {
        assert_eq!(available_bytes(&machine(&[])), u64::MAX);
    }
}
