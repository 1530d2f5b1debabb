//! Tutti's real fabrics, its bootstrap and its process spawning.

pub mod bootstrap;
pub mod launch;
pub mod shm;
