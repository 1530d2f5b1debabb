//! How many processors the ranks of a node may use together.
//!
//! Each rank tells where it may run and how much processor time its control group has; the union
//! and the sum count, for ranks are often pinned to one processor each.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use rustix::thread::CpuSet;

use super::cgroup::{Read, Version, folders};

/// Words of a set of processors.
pub(super) const MASK_WORDS: usize = CpuSet::MAX_CPU / 64;

/// Where one rank may run and how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Share {
    /// The processors it may run on.
    pub(super) mask: [u64; MASK_WORDS],
    /// Which control group limits its time; ranks with the same one share the quota.
    pub(super) group: u64,
    /// Thousandths of a processor; `u64::MAX` without a limit.
    pub(super) quota: u64,
}

impl Share {
    /// The share of this process.
    pub(super) fn of_this_process(read: Read<'_>) -> Self {
        let (group, quota) = quota(read);
        Self {
            mask: affinity(),
            group,
            quota,
        }
    }
}

/// Processors for all of these ranks together, at least 1.
pub(super) fn together<'a>(shares: impl Iterator<Item = &'a Share>) -> u32 {
    let mut mask = [0; MASK_WORDS];
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for share in shares {
        for (all, one) in mask.iter_mut().zip(&share.mask) {
            *all |= one;
        }
        if !groups.iter().any(|(group, _)| *group == share.group) {
            groups.push((share.group, share.quota));
        }
    }
    let count: u32 = mask.iter().map(|word| word.count_ones()).sum();
    let quota = groups
        .iter()
        .fold(0, |sum: u64, (_, quota)| sum.saturating_add(*quota));
    let whole = u32::try_from(quota / 1000).unwrap_or(u32::MAX);
    count.min(whole).max(1)
}

fn affinity() -> [u64; MASK_WORDS] {
    let mut mask = [0; MASK_WORDS];
    let mut allow = |cpu: usize| mask[cpu / 64] |= 1 << (cpu % 64);
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .for_each(allow),
        // A machine with more processors than a `CpuSet` holds: their number must do.
        Err(_) => {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            (0..count.min(CpuSet::MAX_CPU)).for_each(&mut allow);
        }
    }
    mask
}

/// The tightest limit of time and the group that sets it.
fn quota(read: Read<'_>) -> (u64, u64) {
    folders(read, "cpu")
        .iter()
        .filter_map(|(version, folder)| {
            let mut hasher = DefaultHasher::new();
            folder.hash(&mut hasher);
            Some((hasher.finish(), group_quota(read, *version, folder)?))
        })
        .min_by_key(|(_, quota)| *quota)
        .unwrap_or((0, u64::MAX))
}

fn group_quota(read: Read<'_>, version: Version, folder: &Path) -> Option<u64> {
    let text = |name: &str| read(&folder.join(name));
    let (quota, period) = match version {
        Version::V1 => (text("cpu.cfs_quota_us")?, text("cpu.cfs_period_us")?),
        Version::V2 => {
            let both = text("cpu.max")?;
            let (quota, period) = both.trim().split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
    };
    // "max" and "-1" are no numbers and no limits.
    let quota: u64 = quota.trim().parse().ok()?;
    let period: u64 = period.trim().parse().ok()?;
    quota.checked_mul(1000)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::super::cgroup::tests::machine;
    use super::*;

    fn share(mask: u64, group: u64, quota: u64) -> Share {
        let mut words = [0; MASK_WORDS];
        words[0] = mask;
        Share {
            mask: words,
            group,
            quota,
        }
    }

    #[test]
    fn ranks_pinned_to_one_processor_each_have_all_of_them_together() {
        let shares = [
            share(1, 0, u64::MAX),
            share(2, 0, u64::MAX),
            share(2, 0, u64::MAX),
        ];

        assert_eq!(together(shares.iter()), 2);
    }

    #[test]
    fn a_quota_is_shared_within_a_group_and_added_over_groups() {
        let one_group = [share(0xff, 7, 2500), share(0xff, 7, 2500)];
        let two_groups = [share(0xff, 7, 2500), share(0xff, 8, 1500)];
        let starved = [share(0xff, 7, 300)];

        assert_eq!(together(one_group.iter()), 2);
        assert_eq!(together(two_groups.iter()), 4);
        assert_eq!(together(starved.iter()), 1);
    }

    #[test]
    fn quotas_of_both_versions_are_read_and_the_tightest_counts() {
        const MOUNTS: &str = "30 20 0:1 / /v1 rw - cgroup cgroup rw,cpuacct,cpu\n\
                              31 20 0:2 / /v2 rw - cgroup2 cgroup2 rw\n";
        let first = [
            ("/proc/self/cgroup", "2:cpuacct,cpu:/a\n"),
            ("/proc/self/mountinfo", MOUNTS),
            ("/v1/a/cpu.cfs_quota_us", "-1\n"),
            ("/v1/a/cpu.cfs_period_us", "100000\n"),
            ("/v1/cpu.cfs_quota_us", "350000\n"),
            ("/v1/cpu.cfs_period_us", "100000\n"),
        ];
        let second = [
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/proc/self/mountinfo", MOUNTS),
            ("/v2/a/b/cpu.max", "max 100000\n"),
            ("/v2/a/cpu.max", "150000 100000\n"),
        ];

        assert_eq!(quota(&machine(&first)).1, 3500);
        assert_eq!(quota(&machine(&second)).1, 1500);
        assert_eq!(quota(&machine(&[])), (0, u64::MAX));
    }

    #[test]
    fn this_process_may_run_somewhere() {
        let share = Share::of_this_process(&machine(&[]));

        assert!(share.mask.iter().any(|word| *word != 0));
    }
}
