//! The control groups that this process is in, of either version.
//!
//! A limit may be set at any level, so each look-up yields the own group and all groups around it
//! as far as they are visible here.

use std::path::{Path, PathBuf};

/// Reads a small file; `None` if it cannot be read. The tests play a machine with it.
pub(super) type Read<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// Reads from this machine.
pub(super) fn read_here(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Which files a group has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Version {
    V1,
    V2,
}

/// The folders of the groups that may limit this process by `controller`, innermost first.
pub(super) fn folders(read: Read<'_>, controller: &str) -> Vec<(Version, PathBuf)> {
    let memberships = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let mounts = read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let mut folders = Vec::new();
    for line in memberships.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let version = if controllers.is_empty() {
            Version::V2
        } else if controllers.split(',').any(|name| name == controller) {
            Version::V1
        } else {
            continue;
        };
        let mount = mounts
            .lines()
            .find_map(|mount| mount_of(mount, version, controller));
        if let Some((root, point)) = mount {
            let inner = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
            let innermost = Path::new(point).join(inner.trim_start_matches('/'));
            let around = innermost.ancestors().map(Path::to_path_buf);
            let visible = around.take_while(|folder| folder.starts_with(point));
            folders.extend(visible.map(|folder| (version, folder)));
        }
    }
    folders
}

/// Root and mount point of a line of `mountinfo`, if it mounts the wanted hierarchy.
fn mount_of<'a>(line: &'a str, version: Version, controller: &str) -> Option<(&'a str, &'a str)> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut kind = kind.split(' ');
    let (file_system, options) = (kind.next()?, kind.nth(1)?);
    let wanted = match version {
        Version::V2 => file_system == "cgroup2",
        Version::V1 => {
            file_system == "cgroup" && options.split(',').any(|option| option == controller)
        }
    };
    let mut mount = mount.split(' ').skip(3);
    wanted.then_some((mount.next()?, mount.next()?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A machine of the given files.
    pub(in crate::shm) fn machine<'a>(
        files: &'a [(&'a str, &'a str)],
    ) -> impl Fn(&Path) -> Option<String> + 'a {
        |path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path)?;
            Some(file.1.to_owned())
        }
    }

    #[test]
    fn both_versions_are_found_with_all_groups_around() {
        let files = [
            (
                "/proc/self/cgroup",
                "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/x\n",
            ),
            (
                "/proc/self/mountinfo",
                "30 20 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 31 20 0:2 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
        ];

        let found = folders(&machine(&files), "memory");

        assert_eq!(
            found,
            [
                (Version::V1, "/sys/fs/cgroup/memory/a/b".into()),
                (Version::V1, "/sys/fs/cgroup/memory/a".into()),
                (Version::V1, "/sys/fs/cgroup/memory".into()),
                (Version::V2, "/sys/fs/cgroup/unified/x".into()),
                (Version::V2, "/sys/fs/cgroup/unified".into()),
            ]
        );
    }

    #[test]
    fn a_mount_of_a_part_of_the_hierarchy_is_seen_from_its_root() {
        let files = [
            ("/proc/self/cgroup", "0::/docker/c1/job\n"),
            (
                "/proc/self/mountinfo",
                "31 20 0:2 /docker/c1 /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
            ),
        ];

        assert_eq!(
            folders(&machine(&files), "cpu"),
            [
                (Version::V2, "/sys/fs/cgroup/job".into()),
                (Version::V2, "/sys/fs/cgroup".into()),
            ]
        );
    }

    #[test]
    fn a_machine_without_groups_has_none() {
        assert_eq!(folders(&machine(&[]), "cpu"), []);
    }
}
