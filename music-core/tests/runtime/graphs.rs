//! Random graphs of two to eight applications, with loops: no deadlock, and nothing late, lost or
//! foreign, whatever the network does.

use std::fmt::Write;

use music_core::{IndexMap, Order};
use transport_core::{Nanos, Topology};
use transport_sim::Adversary;

use crate::harness::{Program, Scenario, blocks, dealt, everything, mix, scattered, unit};

const INPUTS: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];
const OUTPUTS: [&str; 2] = ["first", "second"];
const SIZE: u32 = 24;

/// A source of choices.
struct Dice {
    seed: u64,
    thrown: u64,
}

impl Dice {
    fn new(seed: u64) -> Self {
        Self { seed, thrown: 0 }
    }

    fn bits(&mut self) -> u64 {
        self.thrown += 1;
        mix(&[self.seed, self.thrown])
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.bits() >> 20) % end
    }

    fn chance(&mut self, share: f64) -> bool {
        unit(self.bits()) < share
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Any graph whose latencies allow its loops.
fn graph(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed);
    let count = 2 + dice.below(7) as usize;
    let ticks: Vec<u64> = (0..count).map(|_| dice.pick(&[1, 1, 1, 2, 3, 5])).collect();
    let ranks: Vec<u32> = (0..count).map(|_| 1 + dice.below(3) as u32).collect();
    let mut programs: Vec<Program> = (0..count)
        .map(|index| {
            let tick = ticks[index] as f64 * 1e-3;
            let steps = 60 / ticks[index] + dice.below(4);
            let mut program = Program::new(&format!("app{index}"), tick, steps);
            for name in OUTPUTS {
                let maps = sending(&mut dice, ranks[index]);
                program = program.output(name, maps);
            }
            for output in &mut program.outputs {
                output.max_buffered = dice.pick(&[None, None, Some(1), Some(2), Some(5)]);
            }
            program
                .rate(dice.pick(&[0.0, 0.05, 0.3]))
                .computing(dice.pick(&PACES))
        })
        .collect();
    let mut file = String::new();
    for (program, ranks) in programs.iter().zip(&ranks) {
        writeln!(file, "[{}]\nnp={ranks}\nbinary=x", program.name).expect("a string takes all");
    }
    let edges = count as u64 + dice.below(2 * count as u64);
    for _ in 0..edges {
        let from = dice.below(count as u64) as usize;
        let to = (from + 1 + dice.below(count as u64 - 1) as usize) % count;
        let input = programs[to].inputs.len();
        if input == INPUTS.len() {
            continue;
        }
        // Every loop goes backward somewhere, and most have enough latency there.
        let latency = match from < to && dice.chance(0.3) {
            true => dice.below(4),
            false => ticks[from] + dice.below(8),
        };
        let latency = if from > to { latency.max(12) } else { latency };
        let output = dice.pick(&[0, 1]);
        let way = dice.pick(&["", "[24]", "[24, collective]", "[, collective]"]);
        writeln!(
            file,
            "app{from}.{} -> app{to}.{} {way}",
            OUTPUTS[output], INPUTS[input]
        )
        .expect("a string takes all");
        let maps = wanted(&mut dice, ranks[to]);
        let program = programs.remove(to);
        let mut program = program.input(INPUTS[input], maps, latency as f64 * 1e-3);
        program.inputs[input].order = dice.pick(&[Order::ByRank, Order::ByTime]);
        program.inputs[input].max_buffered = dice.pick(&[None, None, Some(2)]);
        if dice.chance(0.5) {
            program = program.relay(input, output);
        }
        programs.insert(to, program);
    }
    let size: u32 = ranks.iter().sum();
    let nodes: Vec<u64> = (0..size).map(|_| dice.below(3)).collect();
    Scenario::new(&file, programs)
        .on(Topology::from_nodes(&nodes))
        .seed(seed)
}

const PACES: [fn(u32) -> Nanos; 4] = [
    |_| Nanos(0),
    |_| Nanos(0),
    |rank| Nanos::micros(200 * u64::from(rank)),
    |_| Nanos::millis(1),
];

/// Ids to send; together all, so that no receiver reaches further.
fn sending(dice: &mut Dice, ranks: u32) -> Vec<IndexMap> {
    match dice.below(4) {
        0 => dealt(SIZE, ranks, dice.bits()),
        1 => everything(SIZE, ranks),
        _ => blocks(SIZE, ranks),
    }
}

fn wanted(dice: &mut Dice, ranks: u32) -> Vec<IndexMap> {
    match dice.below(4) {
        0 => blocks(SIZE, ranks),
        1 => scattered(SIZE, ranks, 0.4, dice.bits()),
        _ => everything(SIZE, ranks),
    }
}

/// Whether the graph has a schedule; a few draws have a loop that is too tight.
fn runs(scenario: &Scenario) -> bool {
    let seed = scenario.seed;
    let results = scenario.run();
    if let Some(Err(music_core::Error::Schedule(_))) = results.first() {
        assert!(results.iter().all(|result| *result == results[0]));
        return false;
    }
    let logs: Vec<_> = results
        .into_iter()
        .map(|log| log.unwrap_or_else(|error| panic!("seed {seed}: {error}")))
        .collect();
    let verdict = scenario.judge(&logs);
    assert_eq!(
        verdict,
        crate::oracle::Verdict::default(),
        "seed {seed}: {}",
        scenario.file
    );
    true
}

#[test]
fn random_graphs_neither_block_nor_lose_anything() {
    let ran = (0..120).filter(|&seed| runs(&graph(seed))).count();

    assert!(ran > 80, "{ran} graphs ran");
}

#[test]
fn random_graphs_run_under_harsh_conditions() {
    let ran = (1000..1060)
        .filter(|&seed| runs(&graph(seed).against(Adversary::harsh(seed))))
        .count();

    assert!(ran > 40, "{ran} graphs ran");
}

#[test]
fn random_graphs_run_with_rings_that_are_always_full() {
    let crowded = |seed| {
        let mut scenario = graph(seed).heap(40_000);
        for program in &mut scenario.programs {
            for output in &mut program.outputs {
                output.rate *= 30.0;
            }
        }
        scenario
    };
    let ran = (3000..3020).filter(|&seed| runs(&crowded(seed))).count();
    let harsh = (3020..3030)
        .filter(|&seed| runs(&crowded(seed).against(Adversary::harsh(seed))))
        .count();

    assert!(ran + harsh > 20, "{ran} and {harsh} graphs ran");
}

#[test]
fn graphs_deliver_alike_under_every_adversary() {
    for seed in 2000..2010 {
        let calm = graph(seed).run();
        for adversary in [Adversary::harsh(seed), Adversary::unordered()] {
            let other = graph(seed).against(adversary).run();
            for (calm, other) in calm.iter().zip(other) {
                let deliveries = |log: &Result<crate::harness::Log, _>| {
                    log.as_ref().ok().map(|log| log.delivered.clone())
                };
                assert_eq!(deliveries(calm), deliveries(&other), "seed {seed}");
            }
        }
    }
}
