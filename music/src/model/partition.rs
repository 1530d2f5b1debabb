//! Which units of a population belong to which rank of an application.

/// How units are dealt out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Layout {
    /// Neighbouring units together: rank 0 has the first ones.
    #[default]
    Linear,
    /// One by one: rank r has every unit u with `u mod ranks = r`.
    Roundrobin,
}

/// The units of one rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    /// Units of the whole population.
    pub units: u32,
    /// Ranks of the application.
    pub ranks: u32,
    /// Whose part.
    pub rank: u32,
    /// How they are dealt out.
    pub layout: Layout,
}

impl Partition {
    /// How many units the rank has.
    pub fn len(self) -> u32 {
        self.units / self.ranks + u32::from(self.rank < self.units % self.ranks)
    }

    /// Whether the rank has none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Its units, ascending.
    pub fn units(self) -> impl Iterator<Item = u32> {
        let (first, step) = match self.layout {
            Layout::Linear => (self.first(), 1),
            Layout::Roundrobin => (self.rank, self.ranks),
        };
        (0..self.len()).map(move |local| first + local * step)
    }

    /// Which of the rank's units, counted from 0, a unit is; `None` if another rank has it.
    pub fn local(self, unit: u32) -> Option<u32> {
        let local = match self.layout {
            Layout::Linear => unit.checked_sub(self.first())?,
            Layout::Roundrobin if unit % self.ranks == self.rank => unit / self.ranks,
            Layout::Roundrobin => return None,
        };
        (local < self.len()).then_some(local)
    }

    /// The first unit of a linear part.
    pub fn first(self) -> u32 {
        let (each, rest) = (self.units / self.ranks, self.units % self.ranks);
        self.rank * each + self.rank.min(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_belongs_to_exactly_one_rank() {
        for layout in [Layout::Linear, Layout::Roundrobin] {
            for units in [0, 1, 2, 7, 10, 101] {
                for ranks in 1..12 {
                    let part = |rank| Partition {
                        units,
                        ranks,
                        rank,
                        layout,
                    };
                    let mut all: Vec<u32> = (0..ranks).flat_map(|r| part(r).units()).collect();
                    all.sort_unstable();

                    assert_eq!(
                        all,
                        (0..units).collect::<Vec<_>>(),
                        "{layout:?} {units} {ranks}"
                    );
                    for (local, unit) in (0..ranks).flat_map(|r| (0..).zip(part(r).units())) {
                        let known = (0..ranks).filter_map(|r| part(r).local(unit));
                        assert_eq!(known.collect::<Vec<_>>(), [local], "{layout:?} {unit}");
                    }
                    assert!((0..ranks).all(|r| part(r).local(units).is_none()));
                }
            }
        }
    }

    #[test]
    fn linear_parts_are_contiguous_and_the_first_ranks_take_the_rest() {
        let part = |rank| Partition {
            units: 7,
            ranks: 3,
            rank,
            layout: Layout::Linear,
        };

        assert_eq!(part(0).units().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(part(1).units().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(part(2).units().collect::<Vec<_>>(), [5, 6]);
    }
}
