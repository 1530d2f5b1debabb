//! Communicators from communicators.

use transport_core::{Deadline, Driver, Fabric, Group, Rank};

use crate::communicator::absolute;
use crate::plan::{Plan, Want};
use crate::{CollectiveError, Communicator};

impl Communicator {
    /// One communicator for each colour, of the members that gave it, ordered by key and then by
    /// index here; `None` for members without a colour. All members call it.
    ///
    /// # Errors
    /// [`CollectiveError::Full`] or [`CollectiveError::PeersFull`] on all, if there is no room;
    /// [`CollectiveError::Wait`].
    pub fn split<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        color: Option<u32>,
        key: u32,
        deadline: Deadline,
    ) -> Result<Option<Self>, CollectiveError> {
        let deadline = absolute(driver, deadline);
        let members = self.with_my_color(driver, color, key, deadline)?;
        let fabric = driver.fabric_mut();
        let heap_bytes = fabric.heap().capacity();
        let made = (!members.is_empty()).then(|| {
            let group = Group::new(fabric.topology(), &members, fabric.rank());
            let plan = Plan::of(&group, &fabric.capabilities(), heap_bytes);
            (group, plan)
        });
        let want = made.as_ref().map_or(Want::default(), |(_, p)| p.want());
        let holdings = self.allocate(driver, want, deadline)?;
        let renounced = self.has_renounced();
        Ok(made.map(|(group, plan)| {
            let part = Self::build(group, &plan, holdings);
            if renounced {
                part.without_agreement()
            } else {
                part
            }
        }))
    }

    /// A communicator of the same members.
    ///
    /// # Errors
    /// As [`split`](Self::split).
    pub fn duplicate<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        deadline: Deadline,
    ) -> Result<Self, CollectiveError> {
        let index = self.index();
        let copy = self.split(driver, Some(0), index, deadline)?;
        Ok(copy.expect("every member has a colour"))
    }

    /// The ranks that gave my colour, in their new order; none if I gave none.
    fn with_my_color<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        color: Option<u32>,
        key: u32,
        deadline: Deadline,
    ) -> Result<Vec<Rank>, CollectiveError> {
        let mut mine = Vec::with_capacity(CHOICE_BYTES);
        mine.extend(color.map_or(NO_COLOR, u64::from).to_le_bytes());
        mine.extend(u64::from(key).to_le_bytes());
        let all = self.allgatherv(driver, &mine, deadline)?;
        if color.is_none() {
            return Ok(Vec::new());
        }
        let mut chosen: Vec<(&[u8], u32)> = all
            .parts()
            .zip(0..)
            .filter(|(choice, _)| choice.first_chunk::<8>() == mine.first_chunk())
            .collect();
        chosen.sort_by_key(|(choice, index)| (key_of(choice), *index));
        let ranks = chosen.iter().map(|(_, index)| self.group().rank(*index));
        Ok(ranks.collect())
    }
}

fn key_of(choice: &[u8]) -> u64 {
    let key = choice.last_chunk().copied();
    key.map_or(0, u64::from_le_bytes)
}

const CHOICE_BYTES: usize = 16;

/// No 32-bit colour.
const NO_COLOR: u64 = u64::MAX;
