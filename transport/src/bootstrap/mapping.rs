//! `PMI_process_mapping`: which ranks the launcher put on one node, as a hint.
//!
//! `(vector,(0,2,3),(2,1,1))`: from node 0, 2 nodes with 3 ranks each, then node 2 with one.

/// The node of each rank, or `None` if the text is no mapping of `size` ranks.
pub(crate) fn nodes_of_ranks(text: &str, size: u32) -> Option<Vec<u32>> {
    let size = usize::try_from(size).ok()?;
    let blocks = text.strip_prefix("(vector,")?.strip_suffix(')')?;
    let mut nodes = Vec::new();
    for block in blocks.strip_prefix('(')?.strip_suffix(')')?.split("),(") {
        let mut numbers = block.split(',').map(|word| word.trim().parse::<u32>());
        let (first, count, each) = (
            numbers.next()?.ok()?,
            numbers.next()?.ok()?,
            numbers.next()?.ok()?,
        );
        if numbers.next().is_some() || each == 0 {
            return None;
        }
        for node in first..first.checked_add(count)? {
            let each = usize::try_from(each).ok()?.min(size - nodes.len());
            nodes.extend(std::iter::repeat_n(node, each));
            if nodes.len() == size {
                return Some(nodes);
            }
        }
    }
    None
}

/// The text that says which node each rank is on.
pub(crate) fn text(nodes: &[u32]) -> String {
    // Consecutive ranks on one node, and then blocks that continue the one before.
    let mut blocks: Vec<[u32; 3]> = Vec::new();
    for run in nodes.chunk_by(|one, next| one == next) {
        let each = u32::try_from(run.len()).expect("ranks fit u32");
        match blocks.last_mut() {
            Some([first, count, size])
                if *size == each && first.checked_add(*count) == Some(run[0]) =>
            {
                *count += 1;
            }
            _ => blocks.push([run[0], 1, each]),
        }
    }
    let blocks = blocks
        .iter()
        .map(|[first, count, each]| format!(",({first},{count},{each})"));
    format!("(vector{})", blocks.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_read_as_it_was_written() {
        for (nodes, expected) in [
            (&[0, 0, 0][..], "(vector,(0,1,3))"),
            (&[0, 0, 1, 1, 2], "(vector,(0,2,2),(2,1,1))"),
            (&[0, 1, 0, 1], "(vector,(0,2,1),(0,2,1))"),
            (&[1, 0], "(vector,(1,1,1),(0,1,1))"),
        ] {
            let text = text(nodes);
            assert_eq!(text, expected);
            let size = u32::try_from(nodes.len()).unwrap();
            assert_eq!(nodes_of_ranks(&text, size).as_deref(), Some(nodes));
        }
    }

    #[test]
    fn blocks_are_counted_out() {
        for (text, size, expected) in [
            ("(vector,(0,1,3))", 3, Some(vec![0, 0, 0])),
            ("(vector,(0,2,2),(2,1,1))", 5, Some(vec![0, 0, 1, 1, 2])),
            ("(vector,(0,2,1),(0,2,1))", 4, Some(vec![0, 1, 0, 1])),
            ("(vector,(0,1,4294967295))", 2, Some(vec![0, 0])),
            ("(vector,(0,1,2))", 3, None),
            ("(vector,(0,4294967295,0))", 3, None),
            ("(vector,(4294967295,4294967295,1))", 3, None),
            ("(vector,(0,1))", 1, None),
            ("(vector,(0,1,1,1))", 1, None),
            ("(vector,)", 1, None),
            ("(flat,(0,1,1))", 1, None),
            ("", 1, None),
        ] {
            assert_eq!(nodes_of_ranks(text, size), expected, "{text}");
        }
    }
}
