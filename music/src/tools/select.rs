//! `eventselect`: forwards the events of chosen units.

use std::collections::HashSet;
use std::path::Path;

use tutti::{OutputPort, Outputs};

use super::ToolError;
use super::options::{IndexType, Select};
use super::stage::{Actor, Incoming, Stage, map_of};
use crate::model::{Layout, Partition};

/// Runs the tool.
pub(super) fn run(options: Select) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let (ranks, rank) = (stage.ranks(), stage.rank());
    let part = Partition {
        units: options.units,
        ranks,
        rank,
        layout: Layout::Linear,
    };
    let (input, out) = (stage.input(&options.input)?, stage.output(&options.out)?);
    stage.map_input(
        input,
        map_of(part)?,
        IndexType::Global,
        options.buffering,
        0.0,
    )?;
    stage.map_output(out, map_of(part)?, IndexType::Global, options.buffering)?;
    let selected = read_ids(&options.units_file)?.into_iter().collect();
    stage.run(&mut Forwarding { out, selected })
}

/// The ids in a file, separated by white space; lines that start with `#` are skipped.
///
/// # Errors
/// One line with the file's name and the line.
pub fn read_ids(path: &Path) -> Result<Vec<u32>, ToolError> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    let mut ids = Vec::new();
    for (line, number) in text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.starts_with('#'))
    {
        for word in line.split_whitespace() {
            let wrong = |_| format!("{}:{number}: `{word}` is not an id", path.display());
            ids.push(word.parse().map_err(wrong)?);
        }
    }
    Ok(ids)
}

struct Forwarding {
    out: OutputPort,
    selected: HashSet<u32>,
}

impl Actor for Forwarding {
    fn receive(&mut self, outputs: &mut Outputs, delivery: Incoming<'_>) -> Result<(), ToolError> {
        for event in delivery.events {
            if self.selected.contains(&event.id) {
                outputs.insert_event(self.out, event.time, event.id);
            }
        }
        Ok(())
    }
}
