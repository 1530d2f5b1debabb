//! What loops of connections demand of latencies, periods and lags.

use super::Edge;
use super::graph::{self, Arc};
use crate::job::Job;
use crate::schedule::earliest_lag;
use crate::time::Ticks;

/// Limits buffering and lengthens lags so that no loop waits for itself. Answers one loop for each
/// group of applications whose latencies are too short, as indices of edges; then nothing changed.
pub(super) fn settle(nodes: usize, edges: &mut [Edge]) -> Vec<Vec<usize>> {
    let groups = groups(nodes, edges);
    let faults: Vec<_> = groups
        .iter()
        .filter_map(|group| group.too_short(edges))
        .collect();
    if faults.is_empty() {
        for group in groups {
            group.limit_buffering(edges);
            group.lengthen_lags(edges);
        }
    }
    faults
}

/// The way around as a file would write it.
pub(super) fn path(job: &Job, edges: &[Edge], around: &[usize]) -> String {
    let name = |&edge: &usize| job.connection_name(&job.connections[edges[edge].connection]);
    around.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Applications that are all in loops with each other, and the connections among them.
struct Group {
    nodes: usize,
    /// Index of each connection, and its two ends numbered within the group.
    members: Vec<(usize, usize, usize)>,
}

fn groups(nodes: usize, edges: &[Edge]) -> Vec<Group> {
    let arcs: Vec<Arc> = edges
        .iter()
        .map(|edge| Arc {
            from: edge.from,
            to: edge.to,
            weight: 0,
        })
        .collect();
    let component = graph::components(nodes, &arcs);
    let mut number = vec![usize::MAX; nodes];
    let mut groups: Vec<Option<Group>> = Vec::new();
    groups.resize_with(nodes, || None);
    for (index, edge) in edges.iter().enumerate() {
        if component[edge.from] != component[edge.to] {
            continue;
        }
        let group = groups[component[edge.from]].get_or_insert_with(|| Group {
            nodes: 0,
            members: Vec::new(),
        });
        for node in [edge.from, edge.to] {
            if number[node] == usize::MAX {
                number[node] = group.nodes;
                group.nodes += 1;
            }
        }
        group
            .members
            .push((index, number[edge.from], number[edge.to]));
    }
    groups.into_iter().flatten().collect()
}

impl Group {
    /// A loop whose latencies add up to less than its ticks.
    fn too_short(&self, edges: &[Edge]) -> Option<Vec<usize>> {
        let around = self.potentials(edges, spare).err()?;
        Some(
            around
                .into_iter()
                .map(|member| self.members[member].0)
                .collect(),
        )
    }

    /// No period is longer than one tick plus the mean of what the tightest loop has to spare.
    fn limit_buffering(&self, edges: &mut [Edge]) {
        if self
            .members
            .iter()
            .all(|&(edge, ..)| edges[edge].max_buffered == 1)
        {
            return;
        }
        let spare = self.least_mean_spare(edges);
        for &(edge, ..) in &self.members {
            let edge = &mut edges[edge];
            let ticks = 1 + spare / i128::from(edge.sender_tick.0);
            edge.max_buffered = edge
                .max_buffered
                .min(u64::try_from(ticks).unwrap_or(u64::MAX));
        }
    }

    /// The largest whole number that no loop's mean of latency minus tick is below.
    fn least_mean_spare(&self, edges: &[Edge]) -> i128 {
        let feasible = |mean: i128| self.potentials(edges, |edge| spare(edge) - mean).is_ok();
        // `low` holds always; `high` never, as no loop's mean is above the largest of its arcs.
        let most = self
            .members
            .iter()
            .map(|&(edge, ..)| spare(&edges[edge]))
            .max();
        let (mut low, mut high) = (0, most.unwrap_or(0) + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if feasible(middle) {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }

    /// Gives each connection the lag that leaves no circle of waiting; the least one, if that does.
    fn lengthen_lags(&self, edges: &mut [Edge]) {
        // All times of the group are multiples of this, which sharpens every bound.
        let grid = self.members.iter().fold(0, |grid, &(edge, ..)| {
            let Edge {
                sender_tick,
                receiver_tick,
                ..
            } = edges[edge];
            gcd(gcd(grid, sender_tick.0), receiver_tick.0)
        });
        // A loop is safe if its steps back add up to at least one; a loop has at most `nodes` arcs.
        let scale = self.nodes as i128 + 1;
        let weight = |edge: &Edge, lag: Ticks| scale * steps_back(edge, lag, grid) - 1;
        if self
            .potentials(edges, |edge| weight(edge, least_lag(edge)))
            .is_ok()
        {
            return;
        }
        let potential = self
            .potentials(edges, |edge| weight(edge, edge.latency))
            .expect("latencies add up to at least the periods, so they close no circle");
        for &(edge, from, to) in &self.members {
            let demanded = div_up(potential[to] - potential[from] + 1, scale);
            let edge = &mut edges[edge];
            let lag = reach(edge) - i128::from(grid) * (1 - demanded);
            // Never above the latency, which meets the demand too.
            edge.lag = Ticks(lag.clamp(0, i128::from(edge.latency.0)) as i64);
        }
    }

    fn potentials(
        &self,
        edges: &[Edge],
        weight: impl Fn(&Edge) -> i128,
    ) -> Result<Vec<i128>, Vec<usize>> {
        let arc = |&(edge, from, to): &(usize, usize, usize)| Arc {
            from,
            to,
            weight: weight(&edges[edge]),
        };
        graph::potentials(
            self.nodes,
            &self.members.iter().map(arc).collect::<Vec<_>>(),
        )
    }
}

/// What one connection adds to or takes from its loop.
fn spare(edge: &Edge) -> i128 {
    i128::from(edge.latency.0) - i128::from(edge.sender_tick.0)
}

fn period(edge: &Edge) -> Ticks {
    edge.sender_tick
        .times(edge.max_buffered)
        .unwrap_or(Ticks::MAX)
}

/// The lag that the schedule has by itself.
fn least_lag(edge: &Edge) -> Ticks {
    edge.latency
        .min(earliest_lag(edge.receiver_tick, period(edge)))
}

/// How far beyond the receiver's completed time the sender's must be, less than, with no lag.
fn reach(edge: &Edge) -> i128 {
    i128::from(edge.receiver_tick.0) + i128::from(period(edge).0) - i128::from(edge.sender_tick.0)
}

/// By how many grid steps the sender's time that a receiver waits for is before its own.
fn steps_back(edge: &Edge, lag: Ticks, grid: i64) -> i128 {
    1 - div_up(reach(edge) - i128::from(lag.0), i128::from(grid))
}

/// The quotient rounded up.
fn div_up(dividend: i128, divisor: i128) -> i128 {
    dividend.div_euclid(divisor) + i128::from(dividend.rem_euclid(divisor) != 0)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
