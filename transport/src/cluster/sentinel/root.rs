//! The thread of rank 0: hears every node and passes on what they say.

use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use transport_core::Rank;

use super::wire::{Line, Secret, greeted, keep_alive};
use super::{Ear, News, Told, Watch, note, sleep};
use crate::shm::liveness::has_left;

/// The thread and what it knows.
pub(super) struct Root {
    watch: Watch,
    listener: TcpListener,
    secret: Secret,
    ear: Ear,
    told: Told,
    /// The connection of each node; `None` before it comes and after it ended.
    nodes: Vec<Option<Line>>,
    came: Vec<bool>,
    /// Connections that have not said who they are.
    unknown: Vec<(Line, Instant)>,
    /// All that was passed on, for nodes that come later.
    so_far: Vec<News>,
    reported: bool,
}

impl Root {
    pub(super) fn new(watch: Watch, listener: TcpListener, secret: Secret, ear: Ear) -> Self {
        let nodes = watch.topology.nodes() as usize;
        Self {
            told: Told::nothing(&watch),
            watch,
            listener,
            secret,
            ear,
            nodes: (0..nodes).map(|_| None).collect(),
            came: (0..nodes).map(|node| node == 0).collect(),
            unknown: Vec::new(),
            so_far: Vec::new(),
            reported: false,
        }
    }

    /// Until all of the job have left, or one of it is lost, and all nodes were told.
    pub(super) fn run(mut self) {
        while !self.is_done() {
            let mut sources = vec![
                self.ear.look.as_fd(),
                self.watch.mates.descriptor(),
                self.listener.as_fd(),
            ];
            sources.extend(self.lines().map(|line| line.stream().as_fd()));
            let sources: Vec<BorrowedFd<'_>> = sources;
            sleep(&sources);
            super::close_door(&self.ear.look);
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.accept();
        self.greet();
        for news in self.told.fresh(&mut self.watch) {
            self.pass_on(news, 0);
        }
        for node in 1..self.nodes.len() {
            self.hear(node);
        }
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        let unknown = self.unknown.iter().map(|(line, _)| line);
        self.nodes.iter().flatten().chain(unknown)
    }

    /// Whether nobody needs to hear anything any more.
    fn is_done(&self) -> bool {
        let all_came = self.came.iter().all(|came| *came);
        let nobody_listens = self.nodes.iter().all(Option::is_none);
        all_came && (nobody_listens || self.told.is_all(&self.watch))
    }

    fn accept(&mut self) {
        // Whatever fails here fails again at the next look, or has passed.
        while let Ok((stream, _)) = self.listener.accept() {
            if stream.set_nonblocking(true).is_ok() && keep_alive(&stream).is_ok() {
                self.unknown.push((Line::new(stream), Instant::now()));
            }
        }
    }

    fn greet(&mut self) {
        for (mut line, since) in std::mem::take(&mut self.unknown) {
            match line.hear_hello() {
                Ok(None) if since.elapsed() < HELLO_WITHIN => self.unknown.push((line, since)),
                Ok(Some(hello)) => match greeted(&hello, &self.secret) {
                    Some(node) if self.came.get(node as usize) == Some(&false) => {
                        self.welcome(line, node as usize);
                    }
                    _ => self.report(),
                },
                _ => self.report(),
            }
        }
    }

    fn welcome(&mut self, mut line: Line, node: usize) {
        self.came[node] = true;
        for news in &self.so_far {
            line.say(*news);
        }
        self.nodes[node] = Some(line);
    }

    fn hear(&mut self, node: usize) {
        let Some(line) = &mut self.nodes[node] else {
            return;
        };
        let (news, ended) = line.hear();
        for news in news {
            // First, for this process may end because of it.
            self.pass_on(news, node);
            note(&self.watch.segment, news);
        }
        if !ended {
            return;
        }
        self.nodes[node] = None;
        let node = u32::try_from(node).expect("fewer nodes than ranks");
        let ranks = self.watch.topology.ranks_of(node);
        // Its thread goes on after the rank has left, as long as its process does.
        if let Some(first) = ranks.first().filter(|first| !self.has_left(**first)) {
            note(&self.watch.segment, News::Lost(*first));
            // Passed on at the next look at the segment.
        }
    }

    fn has_left(&self, rank: Rank) -> bool {
        has_left(&self.watch.segment, rank)
    }

    /// Tells all nodes but the one that it is from.
    fn pass_on(&mut self, news: News, from: usize) {
        self.so_far.push(news);
        if matches!(news, News::Lost(_)) {
            self.told.lost = true;
        }
        for (node, line) in self.nodes.iter_mut().enumerate() {
            if let Some(line) = line.as_mut().filter(|_| node != from) {
                // If it is gone, hearing from it says so.
                line.say(news);
            }
        }
    }

    fn report(&mut self) {
        if !self.reported {
            self.reported = true;
            eprintln!("tutti: rank 0 dropped a connection that is not of this job");
        }
    }
}

/// How long a connection may be silent before it is a stranger's.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
