//! Makes a segment after asking whether there is room for it: too large a heap is an error line
//! and never a signal now or later.

use std::os::fd::OwnedFd;

use rustix::process::Resource;

use super::layout::{Geometry, PAGE_BYTES};
use super::segment::Segment;
use super::{OpenError, ShmOptions, cgroup, room};

/// Makes and maps a segment, if there is room for it.
pub(super) fn make_segment(
    ranks: u32,
    options: &ShmOptions,
) -> Result<(OwnedFd, Segment), OpenError> {
    let heap_bytes = options
        .heap_bytes
        .max(1)
        .checked_next_multiple_of(PAGE_BYTES)
        .unwrap_or(u64::MAX);
    let lack = |bytes, cause| OpenError::Memory {
        ranks,
        heap_mib: heap_bytes >> 20,
        bytes,
        cause,
    };
    let geometry = Geometry {
        ranks,
        counters: options.counters,
        heap_bytes,
    };
    let Some(layout) = geometry.layout() else {
        return Err(lack(u64::MAX, "no machine has as much".into()));
    };
    let bytes = layout.bytes() as u64;
    let available = room::available_bytes(&cgroup::read_here);
    if bytes > available {
        return Err(lack(bytes, format!("{available} bytes are available")));
    }
    // A file larger than this limit would end the process by a signal.
    let limit = rustix::process::getrlimit(Resource::Fsize).current;
    if limit.is_some_and(|limit| bytes > limit) {
        return Err(lack(bytes, "the limit of file sizes (ulimit -f)".into()));
    }
    let file = Segment::create(layout).map_err(|error| lack(bytes, error.to_string()))?;
    let segment = Segment::map(&file, geometry).map_err(|error| lack(bytes, error.to_string()))?;
    let segment = segment.expect("the file was made with this geometry");
    Ok((file, segment))
}
