//! Sentinels of two and three nodes that are threads of this process.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use transport_core::{Rank, Topology};

use super::{Secret, Sentinel, Watch, connect};
use crate::shm::layout::Geometry;
use crate::shm::liveness::{Liveness, declare_rank_lost, has_left, leave, lost};
use crate::shm::segment::Segment;

/// Three nodes: ranks 0 and 1, rank 2, rank 3.
struct Job {
    segments: [Arc<Segment>; 3],
    sentinels: Vec<Sentinel>,
    address: SocketAddr,
}

fn segment(names: &[u32]) -> Arc<Segment> {
    let geometry = Geometry {
        ranks: u32::try_from(names.len()).unwrap(),
        counters: 1,
        heap_bytes: 4096,
    };
    let file: OwnedFd = Segment::create(geometry.layout().unwrap()).unwrap();
    let names: Vec<Rank> = names.iter().copied().map(Rank).collect();
    let mapped = Segment::map(&file, geometry).unwrap().unwrap();
    Arc::new(mapped.inhabited(&names, Vec::new()))
}

impl Job {
    fn start() -> Self {
        let segments = [segment(&[0, 1]), segment(&[2]), segment(&[3])];
        let watch = |node: usize| Watch {
            segment: Arc::clone(&segments[node]),
            mates: Liveness::watch(segments[node].names().iter().map(|_| None).collect()).unwrap(),
            topology: Topology::from_nodes(&[0, 0, 1, 2]),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let secret = Secret::draw().unwrap();
        let mut sentinels = Vec::new();
        for node in 1..3 {
            let up = connect(&[address], &secret, node, Duration::from_secs(20)).unwrap();
            sentinels.push(Sentinel::node(watch(node as usize), up).unwrap());
        }
        sentinels.push(Sentinel::root(watch(0), listener, secret).unwrap());
        Self {
            segments,
            sentinels,
            address,
        }
    }

    fn look(&self) {
        self.sentinels.iter().for_each(Sentinel::look);
    }
}

fn soon(what: &str, reached: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !reached() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn all_name(job: &Job, rank: u32) {
    for segment in &job.segments {
        soon("all nodes name the lost rank", || lost(segment).is_err());
        assert_eq!(lost(segment).unwrap_err().rank, Rank(rank));
    }
}

#[test]
fn who_leaves_is_known_to_the_other_nodes_and_not_lost() {
    let job = Job::start();

    leave(&job.segments[0], 1);
    leave(&job.segments[1], 0);
    job.look();

    soon("rank 1 has left", || has_left(&job.segments[2], Rank(1)));
    soon("rank 2 has left", || has_left(&job.segments[2], Rank(2)));
    soon("rank 2 has left for rank 0", || {
        has_left(&job.segments[0], Rank(2))
    });
    assert!(job.segments.iter().all(|segment| lost(segment).is_ok()));
    leave(&job.segments[0], 0);
    leave(&job.segments[2], 0);
    job.look();
    soon("rank 0 has left", || has_left(&job.segments[2], Rank(0)));
    soon("rank 3 has left", || has_left(&job.segments[0], Rank(3)));
    assert!(job.segments.iter().all(|segment| lost(segment).is_ok()));
}

#[test]
fn whoever_is_lost_on_any_node_is_named_by_all() {
    for (node, rank) in [(0, 1), (1, 2), (2, 3)] {
        let job = Job::start();

        declare_rank_lost(&job.segments[node], Rank(rank));

        all_name(&job, rank);
    }
}

#[test]
fn strangers_are_dropped_and_the_job_goes_on() {
    let job = Job::start();

    for bytes in [
        b"GET / HTTP/1.1\r\n\r\nHost: tutti\r\n\r\n".as_slice(),
        &[0; 32],
    ] {
        let mut stranger = TcpStream::connect(job.address).unwrap();
        stranger.write_all(bytes).unwrap();
        stranger
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let end = std::io::Read::read(&mut stranger, &mut [0; 8]);
        assert!(matches!(end, Ok(0)) || end.is_err_and(|error| error.raw_os_error() == Some(104)));
    }

    declare_rank_lost(&job.segments[2], Rank(3));
    all_name(&job, 3);
}
