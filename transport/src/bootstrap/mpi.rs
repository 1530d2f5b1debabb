//! Meeting by MPI itself, for programs that use it anyway (NEST, NEURON): what was put travels in
//! one gather of texts to all.
//!
//! With the cargo feature `mpi` only, which needs an MPI with its headers and libclang to build.

use ::mpi::Count;
use ::mpi::datatype::PartitionMut;
use ::mpi::traits::CommunicatorCollectives;
use transport_core::Rank;

use super::error::BootstrapError;
use super::exchange::Table;
use super::rendezvous::{Rendezvous, RendezvousError};

/// A rendezvous of the ranks of a communicator.
///
/// [`fence`](Rendezvous::fence) is collective over the communicator; nothing else talks to MPI. A
/// rank that never comes, or fails, is MPI's to handle: by default it ends the job.
#[derive(Debug)]
pub struct MpiRendezvous<'a, C> {
    communicator: &'a C,
    table: Table,
}

impl<'a, C: CommunicatorCollectives> MpiRendezvous<'a, C> {
    /// Ranks and size are those of the communicator.
    pub fn new(communicator: &'a C) -> Self {
        Self {
            communicator,
            table: Table::default(),
        }
    }

    fn gather(&self, own: &str) -> Result<Vec<u8>, RendezvousError> {
        let size = usize::try_from(self.communicator.size()).expect("a size is positive");
        let own = own.as_bytes();
        // A length that MPI cannot count would be refused by each rank alone: all must know.
        let length = Count::try_from(own.len()).unwrap_or(Count::MAX);
        let mut lengths: Vec<Count> = vec![0; size];
        self.communicator.all_gather_into(&length, &mut lengths[..]);
        let starts = starts(&lengths).ok_or_else(|| failed("it is more than MPI can count"))?;
        let total: usize = lengths
            .iter()
            .map(|length| usize::try_from(*length).expect("lengths are positive"))
            .sum();
        let mut all = vec![0_u8; total];
        let mut parts = PartitionMut::new(&mut all[..], &lengths[..], &starts[..]);
        self.communicator.all_gather_varcount_into(own, &mut parts);
        Ok(all)
    }
}

/// Where each part starts, if the whole can be counted.
fn starts(lengths: &[Count]) -> Option<Vec<Count>> {
    let mut end: Count = 0;
    let start = |length: &Count| {
        let start = end;
        end = end.checked_add(*length)?;
        Some(start)
    };
    lengths.iter().map(start).collect()
}

fn failed(problem: &str) -> RendezvousError {
    RendezvousError::Refused {
        doing: "exchanging values at a fence",
        answer: problem.to_owned(),
    }
}

impl<C: CommunicatorCollectives> Rendezvous for MpiRendezvous<'_, C> {
    fn rank(&self) -> Rank {
        Rank(u32::try_from(self.communicator.rank()).expect("a rank is not negative"))
    }

    fn size(&self) -> u32 {
        u32::try_from(self.communicator.size()).expect("a size is positive")
    }

    fn publish(&mut self, key: &str, value: &str) -> Result<(), RendezvousError> {
        let put = self.table.put(key, value);
        put.map_err(|error: BootstrapError| RendezvousError::Refused {
            doing: "publishing a value",
            answer: error.to_string(),
        })
    }

    fn fence(&mut self) -> Result<(), RendezvousError> {
        let own = self.table.take_fresh();
        let all = self.gather(&own)?;
        let text = String::from_utf8(all).map_err(|_| failed("a rank published no text"))?;
        let learnt = self.table.learn(&text);
        learnt.map_err(|line| failed(&format!("a rank published {line:?}")))
    }

    fn lookup(&mut self, key: &str) -> Result<Option<String>, RendezvousError> {
        Ok(self.table.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_as_long_as_they_can_be_counted() {
        assert_eq!(starts(&[3, 0, 5]), Some(vec![0, 3, 3]));
        assert_eq!(starts(&[Count::MAX, 1]), None);
        assert_eq!(starts(&[]), Some(vec![]));
    }
}
