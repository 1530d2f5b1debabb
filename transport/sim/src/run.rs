//! Protocols on the simulated fabric, all in one thread.

use std::sync::Arc;

use transport_core::{Fabric, Lost, Nanos, Protocol, Rank, Running, Watch};

use crate::fabric::wait;
use crate::messages::Messages;
use crate::stage::Stage;
use crate::trace::Trace;
use crate::world::Status;
use crate::{Failure, Sim, SimError, SimFabric};

/// What became of one protocol per rank.
#[derive(Clone, Debug)]
pub struct Run<O> {
    /// The seed that shows it again.
    pub seed: u64,
    /// What each rank's protocol yielded; `None` if the rank was lost or learnt of a loss.
    pub outputs: Vec<Option<O>>,
    /// When each rank began; `None` if it never did.
    pub entered: Vec<Option<Nanos>>,
    /// When each rank was done; `None` if it never was.
    pub left: Vec<Option<Nanos>>,
    /// When a rank learnt that one is lost, and which.
    pub learnt: Vec<Option<(Nanos, Lost)>>,
    /// The operations that were posted.
    pub messages: Messages,
    /// What happened, all rounds together, if tracing was asked for.
    pub trace: Arc<Trace>,
    /// Entries and leaves in the order in which they happened: one time can have both.
    steps: Vec<(Rank, Way)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    In,
    Out,
}

impl Sim {
    /// Runs a protocol on every rank; `make` builds it when its rank enters.
    ///
    /// A rank is woken when a counter that its protocol waits for is reached, when one of its
    /// operations finishes, or when something arrived that needs its progress.
    ///
    /// # Errors
    /// The deadlock, broken rule or limit that ended the simulation.
    pub fn run<P: Protocol>(
        &self,
        mut make: impl FnMut(Rank, &mut SimFabric) -> P,
    ) -> Result<Run<P::Output>, SimError> {
        let mut rounds = self.rounds(1, |rank, _, fabric| make(rank, fabric))?;
        Ok(rounds.pop().expect("one round yields one run"))
    }

    /// Runs so many protocols on every rank, one after the other: a rank enters the next round as
    /// soon as it leaves one, whatever the others do. `make` gets the rank and the round, from 0.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn rounds<P: Protocol>(
        &self,
        rounds: u32,
        make: impl FnMut(Rank, u32, &mut SimFabric) -> P,
    ) -> Result<Vec<Run<P::Output>>, SimError> {
        let stage = self.stage_for_protocols();
        let ranks = (0..self.size()).map(Rank);
        let cast = Cast {
            fabrics: ranks
                .clone()
                .map(|rank| self.fabric(rank, &stage))
                .collect(),
            running: ranks.clone().map(|_| None).collect(),
            round: vec![0; self.size() as usize],
            runs: (0..rounds).map(|_| Run::new(self)).collect(),
            watches: Vec::new(),
            stage,
            make,
        };
        if rounds > 0 {
            for rank in ranks {
                cast.stage.lock().world.enter(rank, 0);
            }
        }
        cast.play()
    }
}

/// All ranks and where they stand.
struct Cast<P: Protocol, M> {
    stage: Arc<Stage>,
    fabrics: Vec<SimFabric>,
    running: Vec<Option<Running<P>>>,
    round: Vec<u32>,
    runs: Vec<Run<P::Output>>,
    watches: Vec<Watch>,
    make: M,
}

impl<P: Protocol, M: FnMut(Rank, u32, &mut SimFabric) -> P> Cast<P, M> {
    fn play(mut self) -> Result<Vec<Run<P::Output>>, SimError> {
        loop {
            let next = self.stage.lock().world.next_rank();
            let Some(rank) = next else { break };
            if self.stage.lock().world.status(rank) != Status::Lost {
                self.turn(rank);
            }
        }
        let play = self.stage.lock();
        if let Some(error) = play.world.failed() {
            return Err(error);
        }
        let ended = |rank| matches!(play.world.status(rank), Status::Ended | Status::Lost);
        if !self.runs.is_empty() && !(0..self.running.len() as u32).map(Rank).all(ended) {
            return Err(play.world.error(Failure::Deadlock));
        }
        let trace = Arc::new(play.world.trace().clone());
        for (round, run) in (0..).zip(&mut self.runs) {
            run.messages = play.world.messages(round);
            run.trace = Arc::clone(&trace);
        }
        drop(play);
        Ok(self.runs)
    }

    /// Lets a rank act until it has to wait, or its round ends.
    fn turn(&mut self, rank: Rank) {
        let fabric = &mut self.fabrics[rank.index()];
        let round = self.round[rank.index()];
        let run = &mut self.runs[round as usize];
        if self.running[rank.index()].is_none() {
            let mut play = self.stage.lock();
            play.world.entered(rank);
            run.entered[rank.index()] = Some(play.world.now());
            run.steps.push((rank, Way::In));
            drop(play);
            let protocol = (self.make)(rank, round, fabric);
            self.running[rank.index()] = Some(Running::new(protocol));
        }
        let running = self.running[rank.index()]
            .as_mut()
            .expect("it was made just now");
        match fabric.progress().and_then(|()| running.advance(fabric)) {
            Ok(None) => {
                self.watches.clear();
                running.watch(&mut |watch| self.watches.push(watch));
                wait(fabric, &self.watches);
            }
            Ok(Some(output)) => self.leave(rank, output),
            Err(lost) => {
                let now = fabric.now();
                run.learnt[rank.index()] = Some((now, lost));
                self.stage.lock().world.end(rank);
            }
        }
    }

    fn leave(&mut self, rank: Rank, output: P::Output) {
        let round = self.round[rank.index()];
        let mut play = self.stage.lock();
        let run = &mut self.runs[round as usize];
        run.outputs[rank.index()] = Some(output);
        run.left[rank.index()] = Some(play.world.now());
        run.steps.push((rank, Way::Out));
        play.world.left(rank);
        self.running[rank.index()] = None;
        let next = round + 1;
        if (next as usize) < self.runs.len() {
            self.round[rank.index()] = next;
            play.world.enter(rank, next);
        } else {
            play.world.end(rank);
        }
    }
}

impl<O> Run<O> {
    fn new(sim: &Sim) -> Self {
        let size = sim.size() as usize;
        Self {
            seed: sim.seed(),
            outputs: (0..size).map(|_| None).collect(),
            entered: vec![None; size],
            left: vec![None; size],
            learnt: vec![None; size],
            messages: Messages::default(),
            trace: Arc::default(),
            steps: Vec::with_capacity(2 * size),
        }
    }

    /// From the entry of the last rank until all have left; `None` if one never did.
    pub fn latency(&self) -> Option<Nanos> {
        let entered = self.entered.iter().copied().collect::<Option<Vec<_>>>()?;
        let left = self.left.iter().copied().collect::<Option<Vec<_>>>()?;
        Some(left.into_iter().max()? - entered.into_iter().max()?)
    }

    /// Checks that it was a barrier: nobody left before all had entered, and all left.
    ///
    /// # Errors
    /// A message that names the seed, who left too early or never, and who had not entered.
    pub fn check_barrier(&self) -> Result<(), SimError> {
        let first_out = self.steps.iter().position(|(_, way)| *way == Way::Out);
        let first_out = first_out.unwrap_or(self.steps.len());
        let late = &self.steps[first_out..];
        if let Some((late, _)) = late.iter().find(|(_, way)| *way == Way::In) {
            let (early, _) = self.steps[first_out];
            let what = format!("{early} left before {late} had entered");
            return Err(self.oracle(what));
        }
        match self.left.iter().position(Option::is_none) {
            Some(rank) => Err(self.oracle(format!("rank {rank} never left"))),
            None => Ok(()),
        }
    }

    fn oracle(&self, what: String) -> SimError {
        let times = self.left.iter().flatten().copied();
        SimError {
            seed: self.seed,
            at: times.max().unwrap_or_default(),
            failure: Failure::Oracle(what),
            stuck: Vec::new(),
            trace: Box::new(Trace::clone(&self.trace)),
        }
    }
}
