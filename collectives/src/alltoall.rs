//! Everyone sends to some: a sparse exchange of any amount.
//!
//! Node by node: in shift `s` every node sends to the node `s` further on, a window at a time, and
//! whoever reads there takes what is meant for it. So a byte crosses the network once, to the node
//! that needs it, and one for a node-mate not at all. Shifts for which nobody has anything are
//! left out. Memory is what a member sends and receives; a turn costs a synchronisation of all
//! ([`crate::deal`]).

use transport_core::{Deadline, Driver, Fabric};

use crate::allgather::Gathered;
use crate::deal::{Dealt, NO_SHIFT, Offer, REFUSED};
use crate::letters::{Inbox, Outbox, Part};
use crate::{CollectiveError, Communicator};

impl Communicator {
    /// Sends each part to the member at its index; what was sent to this member, with the index of
    /// the sender, ascending, and for each sender in the order of its parts.
    ///
    /// # Errors
    /// [`CollectiveError::NoMember`] for a part to an index outside the communicator, and
    /// [`CollectiveError::Refused`] on the others then; [`CollectiveError::Wait`].
    pub fn alltoallv<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        parts: &[(u32, Vec<u8>)],
        deadline: Deadline,
    ) -> Result<Vec<(u32, Vec<u8>)>, CollectiveError> {
        let size = self.size();
        let deadline = crate::communicator::absolute(driver, deadline);
        let stray = parts.iter().find(|(to, _)| *to >= size);
        let Some(&(index, _)) = stray else {
            return match self.send_parts(driver, Some(parts), deadline)? {
                Some(came) => Ok(came),
                None => Err(self.name_refusals(driver, true, deadline)),
            };
        };
        self.send_parts(driver, None, deadline)?;
        match self.name_refusals(driver, false, deadline) {
            CollectiveError::Refused { .. } => Err(CollectiveError::NoMember { index, size }),
            error => Err(error),
        }
    }

    /// All shifts; `None` if a member refuses, as this one does without parts.
    fn send_parts<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        parts: Option<&[Part]>,
        deadline: Deadline,
    ) -> Result<Option<Vec<Part>>, CollectiveError> {
        let outbox = Outbox::new(parts.unwrap_or(&[]), self.exchange_shape());
        let mut inbox = Inbox::new(self.index());
        let mut shift = 0;
        loop {
            let letters = outbox.letters(shift);
            let mut offer = Offer {
                shift,
                letters: parts.is_some().then_some(&letters),
                sent: 0,
                next: outbox.after(shift),
            };
            inbox.begin_shift();
            let next = loop {
                let Dealt { taken, left, next } =
                    self.deal(driver, &offer, &mut inbox, deadline)?;
                offer.sent += taken;
                match left {
                    0 => break next,
                    REFUSED => return Ok(None),
                    _ => {}
                }
            };
            if next == NO_SHIFT {
                return Ok(Some(inbox.into_parts()));
            }
            shift = u32::try_from(next).expect("shifts are fewer than nodes");
        }
    }

    /// The error of an exchange that a member refuses.
    fn name_refusals<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        takes_part: bool,
        deadline: Deadline,
    ) -> CollectiveError {
        let nothing: &[u8] = &[];
        let source = takes_part.then_some(nothing);
        let named = self.stream(driver, source, &mut Gathered::default(), deadline);
        named.err().unwrap_or(CollectiveError::Interrupted)
    }
}
