//! Where the ranks of a bench run: hosts that this machine plays, and the fabric between them.

use clap::Args;
use transport::launch::ProcessSpec;

/// Which node each rank is on; blocks of ranks share one.
#[derive(Clone, Debug, Default, Args)]
pub struct Placement {
    /// Hosts that this machine plays; each gets a block of ranks
    #[arg(long, default_value_t = 1)]
    pub nodes: u32,

    /// Network namespaces as hosts, as a,b: then their link is crossed (needs root)
    #[arg(long, value_delimiter = ',')]
    pub namespaces: Vec<String>,

    /// shm, or a provider of libfabric between all ranks; by default what suits the nodes
    #[arg(long)]
    pub fabric: Option<String>,
}

impl Placement {
    /// The node of a rank: blocks as even as they can be.
    pub fn node_of(&self, rank: u32, ranks: u32) -> u32 {
        let place = u64::from(rank) * u64::from(self.node_count()) / u64::from(ranks.max(1));
        u32::try_from(place).unwrap_or(0)
    }

    /// How many nodes there are.
    fn node_count(&self) -> u32 {
        let named = u32::try_from(self.namespaces.len()).unwrap_or(u32::MAX);
        if named > 0 { named } else { self.nodes.max(1) }
    }

    /// The process of a rank, told and moved to where it belongs.
    pub(crate) fn place(&self, process: ProcessSpec, rank: u32, ranks: u32) -> ProcessSpec {
        let node = self.node_of(rank, ranks);
        let mut process = process;
        if let Some(fabric) = &self.fabric {
            process = process.env(transport::cluster::FABRIC_VARIABLE, fabric);
        }
        match self.namespaces.get(node as usize) {
            Some(namespace) => in_namespace(process, namespace),
            None if self.nodes > 1 => process.env("TUTTI_NODE", format!("node{node}")),
            None => process,
        }
    }
}

/// `ip` becomes the program by exec, so descriptors and signals reach it.
fn in_namespace(mut process: ProcessSpec, namespace: &str) -> ProcessSpec {
    let mut args: Vec<_> = ["netns", "exec", namespace].map(Into::into).into();
    args.push(std::mem::replace(&mut process.program, "ip".into()));
    args.append(&mut process.args);
    process.args = args;
    process
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_get_blocks_of_ranks_as_even_as_they_can_be() {
        let two = Placement {
            nodes: 2,
            ..Placement::default()
        };

        let nodes: Vec<u32> = (0..5).map(|rank| two.node_of(rank, 5)).collect();

        assert_eq!(nodes, [0, 0, 0, 1, 1]);
        assert_eq!(Placement::default().node_of(3, 4), 0);
    }

    #[test]
    fn a_rank_is_told_its_node_or_put_into_its_namespace() {
        let spec = || ProcessSpec::new("rank 1", "/bin/program").arg("--smoke");
        let told = Placement {
            nodes: 2,
            fabric: Some("tcp".into()),
            ..Placement::default()
        };
        let moved = Placement {
            namespaces: vec!["a".into(), "b".into()],
            ..Placement::default()
        };

        let told = told.place(spec(), 1, 2);
        let moved = moved.place(spec(), 1, 2);

        assert!(told.env.contains(&("TUTTI_NODE".into(), "node1".into())));
        assert!(told.env.contains(&("TUTTI_FABRIC".into(), "tcp".into())));
        assert_eq!(moved.program, "ip");
        assert_eq!(
            moved.args,
            ["netns", "exec", "b", "/bin/program", "--smoke"]
        );
    }
}
