//! Where the events of one outgoing connection wait until they are sent.

use std::ops::Range;

use crate::port::Event;
use crate::route::Router;

/// The batches of one connection: a single one if all its streams get the same events, else one
/// per stream.
#[derive(Debug)]
pub(crate) struct Outlet {
    router: Router,
    /// The batches that each destination set is copied to.
    sets: Box<[Box<[u32]>]>,
    batches: Box<[Vec<Event>]>,
    /// Events that wait, however many batches they are in.
    inserted: u64,
}

impl Outlet {
    /// `sets` lists, for each destination set, its streams; there are `streams` of them.
    pub(crate) fn new(router: Router, sets: Vec<Vec<u32>>, streams: usize) -> Self {
        let shared = sets.len() == 1 && sets[0].len() == streams;
        let (sets, batches) = if shared {
            (vec![vec![0]], 1)
        } else {
            (sets, streams)
        };
        Self {
            router,
            sets: sets.into_iter().map(Vec::into_boxed_slice).collect(),
            batches: vec![Vec::new(); batches].into(),
            inserted: 0,
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, event: Event) {
        let Some(set) = self.router.set_of(event.id) else {
            return;
        };
        self.inserted += 1;
        if let [batch] = &mut *self.batches {
            batch.push(event);
            return;
        }
        for &batch in &self.sets[set as usize] {
            self.batches[batch as usize].push(event);
        }
    }

    /// The events that wait for a stream.
    pub(crate) fn batch(&self, stream: usize) -> &[Event] {
        match &*self.batches {
            [shared] => shared,
            batches => &batches[stream],
        }
    }

    /// The ids, if they are a range all of whose events all streams get.
    pub(crate) fn shared_range(&self) -> Option<Range<u32>> {
        match self.router {
            Router::Uniform { begin, size } if self.batches.len() == 1 && size > 0 => {
                Some(begin..begin + size)
            }
            _ => None,
        }
    }

    /// The lowest id that is sent and one past the highest.
    pub(crate) fn bounds(&self) -> (u32, u32) {
        self.router.bounds()
    }

    /// Everything has been sent; yields how many events that were, each counted once.
    pub(crate) fn clear(&mut self) -> u64 {
        for batch in &mut self.batches {
            batch.clear();
        }
        std::mem::take(&mut self.inserted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(events: &[Event]) -> Vec<u32> {
        events.iter().map(|event| event.id).collect()
    }

    fn filled(mut outlet: Outlet) -> Outlet {
        for id in 0..10 {
            outlet.insert(Event { time: 0.0, id });
        }
        outlet
    }

    #[test]
    fn all_to_all_keeps_one_batch() {
        let outlet = Outlet::new(Router::new(vec![(2..5, 0)]), vec![vec![0, 1, 2]], 3);

        let outlet = filled(outlet);

        assert_eq!(outlet.batches.len(), 1);
        assert_eq!(ids(outlet.batch(2)), [2, 3, 4]);
        assert_eq!(outlet.inserted, 3);
    }

    #[test]
    fn each_stream_gets_its_ids_in_order_of_insertion() {
        let router = Router::new(vec![(0..3, 0), (3..5, 1), (6..9, 2)]);
        let outlet = Outlet::new(router, vec![vec![0], vec![0, 1], vec![1]], 2);

        let mut outlet = filled(outlet);

        assert_eq!(ids(outlet.batch(0)), [0, 1, 2, 3, 4]);
        assert_eq!(ids(outlet.batch(1)), [3, 4, 6, 7, 8]);
        assert_eq!(outlet.clear(), 8);
        assert_eq!(outlet.batch(0), []);
    }
}
