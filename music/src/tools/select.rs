//! `eventselect`: forwards the events of chosen units.

use std::collections::HashSet;
use std::path::Path;

use tutti::{OutputPort, Outputs};

use super::ToolError;
use super::options::{IndexType, Select};
use super::stage::{Actor, Incoming, Stage, map_of};
use crate::input::{LineError, lines};
use crate::model::{Layout, Partition};
use crate::spikes::is_unit;

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
    let selected = read_ids(&options.units_file, options.units)?
        .into_iter()
        .collect();
    stage.run(&mut Forwarding { out, selected })
}

/// The ids in a file, all below `units`, separated by white space; lines that start with `#` are
/// skipped.
///
/// # Errors
/// One line with the file's name and the line.
pub fn read_ids(path: &Path, units: u32) -> Result<Vec<u32>, ToolError> {
    let mut ids = Vec::new();
    let taken = lines(path, |line| {
        if line.starts_with('#') {
            return Ok(());
        }
        for word in line.split_whitespace() {
            let id = word.parse();
            ids.push(id.map_err(|_| format!("`{word}` is not an id"))?);
            is_unit(ids[ids.len() - 1], units)?;
        }
        Ok(())
    });
    taken.map_err(|error| match error {
        LineError::Io(error) => format!("{}: {error}", path.display()),
        LineError::Line(number, what) => format!("{}:{number}: {what}", path.display()),
    })?;
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
