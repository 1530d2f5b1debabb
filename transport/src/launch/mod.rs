//! Starts the processes of a job and serves their rendezvous.
