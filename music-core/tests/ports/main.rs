//! Ports of every kind on the simulated fabric, judged by what was put in.

mod messages;
mod stage;
