//! The thread of the first rank of a node: tells rank 0 the news of the node and hears the others'.

use std::net::TcpStream;
use std::os::fd::AsFd;

use transport_core::Rank;

use super::wire::Line;
use super::{Ear, News, Told, Watch, note, sleep};
use crate::shm::liveness::{has_left, lost};

/// The thread and what it knows.
pub(super) struct Node {
    watch: Watch,
    up: Line,
    ear: Ear,
    told: Told,
}

impl Node {
    pub(super) fn new(watch: Watch, up: TcpStream, ear: Ear) -> Self {
        Self {
            told: Told::nothing(&watch),
            up: Line::new(up),
            watch,
            ear,
        }
    }

    /// Until all of the job have left, one of it is lost, or there is nobody to tell.
    pub(super) fn run(mut self) {
        loop {
            for news in self.told.fresh(&mut self.watch) {
                // If rank 0 is gone the next look finds it so.
                self.up.say(news);
            }
            let (news, ended) = self.up.hear();
            for news in news {
                note(&self.watch.segment, news);
            }
            if ended && !has_left(&self.watch.segment, ROOT) && !self.told.all_left() {
                note(&self.watch.segment, News::Lost(ROOT));
            }
            let lost = lost(&self.watch.segment).is_err();
            if ended || lost || self.told.is_all(&self.watch) {
                // What was lost here is told once more, for it may have come since.
                for news in self.told.fresh(&mut self.watch) {
                    self.up.say(news);
                }
                return;
            }
            let sources = [
                self.ear.look.as_fd(),
                self.watch.mates.descriptor(),
                self.up.stream().as_fd(),
            ];
            sleep(&sources);
            super::close_door(&self.ear.look);
        }
    }
}

const ROOT: Rank = Rank(0);
