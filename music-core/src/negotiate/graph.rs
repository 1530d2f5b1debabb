//! Shortest paths and loops in a graph of applications.

/// An arc from one node to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arc {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) weight: i128,
}

/// Potentials `p <= 0` with `p[to] <= p[from] + weight` for every arc, or the arcs of a loop with a
/// negative sum, in order. At most `nodes * arcs.len()` steps.
pub(super) fn potentials(nodes: usize, arcs: &[Arc]) -> Result<Vec<i128>, Vec<usize>> {
    let mut potential = vec![0_i128; nodes];
    let mut last: Vec<Option<usize>> = vec![None; nodes];
    let mut improved = None;
    for _ in 0..=nodes {
        improved = None;
        for (index, arc) in arcs.iter().enumerate() {
            let through = potential[arc.from] + arc.weight;
            if through < potential[arc.to] {
                potential[arc.to] = through;
                last[arc.to] = Some(index);
                improved = Some(arc.to);
            }
        }
        if improved.is_none() {
            return Ok(potential);
        }
    }
    Err(improved
        .map(|node| loop_behind(node, arcs, &last))
        .unwrap_or_default())
}

/// The loop that one runs into by going back from `node` along the arcs that improved last.
fn loop_behind(node: usize, arcs: &[Arc], last: &[Option<usize>]) -> Vec<usize> {
    let back = |node: usize| last[node].map(|arc| arcs[arc].from);
    let mut start = node;
    for _ in 0..last.len() {
        start = back(start).unwrap_or(start);
    }
    let mut around = Vec::new();
    let mut at = start;
    while let Some(arc) = last[at] {
        around.push(arc);
        at = arcs[arc].from;
        if at == start {
            break;
        }
    }
    around.reverse();
    around
}

/// For every node the number of its strongly connected component.
pub(super) fn components(nodes: usize, arcs: &[Arc]) -> Vec<usize> {
    let forward = neighbours(nodes, arcs.iter().map(|arc| (arc.from, arc.to)));
    let backward = neighbours(nodes, arcs.iter().map(|arc| (arc.to, arc.from)));
    let mut seen = vec![false; nodes];
    let mut finished = Vec::with_capacity(nodes);
    for node in 0..nodes {
        visit(node, &forward, &mut seen, &mut finished);
    }
    let mut component = vec![usize::MAX; nodes];
    let mut seen = vec![false; nodes];
    for (number, node) in finished.into_iter().rev().enumerate() {
        let mut members = Vec::new();
        visit(node, &backward, &mut seen, &mut members);
        members
            .into_iter()
            .for_each(|member| component[member] = number);
    }
    component
}

fn neighbours(nodes: usize, pairs: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut lists = vec![Vec::new(); nodes];
    pairs.for_each(|(from, to)| lists[from].push(to));
    lists
}

/// Depth first from `start` over unseen nodes; a node is finished behind all it leads to.
fn visit(start: usize, next: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    let mut path = vec![(start, 0)];
    while let Some((node, tried)) = path.last_mut() {
        match next[*node].get(*tried) {
            Some(&neighbour) => {
                *tried += 1;
                if !std::mem::replace(&mut seen[neighbour], true) {
                    path.push((neighbour, 0));
                }
            }
            None => {
                finished.push(*node);
                path.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arcs(list: &[(usize, usize, i128)]) -> Vec<Arc> {
        list.iter()
            .map(|&(from, to, weight)| Arc { from, to, weight })
            .collect()
    }

    #[test]
    fn potentials_satisfy_every_arc_if_no_loop_is_negative() {
        let arcs = arcs(&[(0, 1, -5), (1, 2, 3), (2, 0, 2), (1, 0, 5), (2, 3, -1)]);

        let potential = potentials(4, &arcs).unwrap();

        for arc in arcs {
            assert!(
                potential[arc.to] <= potential[arc.from] + arc.weight,
                "{arc:?}"
            );
        }
    }

    #[test]
    fn a_negative_loop_is_found_and_given_in_order() {
        let arcs = arcs(&[(0, 1, 4), (1, 2, -3), (2, 3, 1), (3, 1, 1), (3, 0, 9)]);

        let around = potentials(4, &arcs).unwrap_err();

        assert_eq!(around.len(), 3);
        assert_eq!(around.iter().map(|&a| arcs[a].weight).sum::<i128>(), -1);
        for (index, &arc) in around.iter().enumerate() {
            assert_eq!(arcs[arc].to, arcs[around[(index + 1) % 3]].from);
        }
    }

    #[test]
    fn components_are_the_nodes_in_loops_with_each_other() {
        let arcs = arcs(&[
            (0, 1, 0),
            (1, 0, 0),
            (1, 2, 0),
            (2, 3, 0),
            (3, 4, 0),
            (4, 2, 0),
        ]);

        let component = components(6, &arcs);

        assert_eq!(component[0], component[1]);
        assert_eq!(component[2], component[3]);
        assert_eq!(component[2], component[4]);
        let distinct: std::collections::HashSet<_> = component.iter().collect();
        assert_eq!(distinct.len(), 3);
    }
}
