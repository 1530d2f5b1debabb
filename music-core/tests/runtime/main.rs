//! Coupled runs on the simulated fabric, judged by an oracle that knows only the file, the maps and
//! the seed.

mod graphs;
mod harness;
mod misuse;
mod oracle;
mod parting;
mod shapes;
mod streams;
mod waits;
