//! The fabric of one node: a shared memory segment that every rank maps.
