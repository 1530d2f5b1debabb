/* The ranks of one MPI communicator as Tutti's library sees them: the boundary between the C that
 * knows MPI and the Rust that does not. All members make the same calls in the same order. */
#ifndef TUTTI_MPI_GROUP_H
#define TUTTI_MPI_GROUP_H

#include <stddef.h>
#include <stdint.h>

typedef struct tutti_mpi_group tutti_mpi_group;

/* What the library asks of MPI. */
typedef struct tutti_mpi_peers {
    uint32_t rank;
    uint32_t size;
    /* Everyone's `bytes` bytes at `mine` to everyone's `all`, by rank; 0 if it went well. */
    int (*gather)(void *context, const void *mine, int bytes, void *all);
    /* Lets MPI go on with what it has to do; never waits. Called in waits, at a bounded rate. */
    void (*progress)(void *context);
    void *context;
} tutti_mpi_peers;

/* Joins the members. On failure NULL, and `message` gets a line of at most `capacity` bytes. */
tutti_mpi_group *tutti_mpi_open(const tutti_mpi_peers *peers, char *message, size_t capacity);

/* 0 if it went well; else tutti_mpi_message says what happened. */
int tutti_mpi_barrier(tutti_mpi_group *group);
/* `all` has `bytes` bytes for each member; `mine` lies outside of it or is this member's place. */
int tutti_mpi_allgather(tutti_mpi_group *group, const void *mine, size_t bytes, void *all);
/* Member i's part of `lengths[i]` bytes goes to `all + starts[i]`; parts may leave gaps and do not
 * overlap. `mine` has `lengths[rank]` bytes and lies outside of `all` or is this member's place. */
int tutti_mpi_allgatherv(tutti_mpi_group *group, const void *mine, void *all,
                         const size_t *lengths, const ptrdiff_t *starts);
const char *tutti_mpi_message(const tutti_mpi_group *group);

/* What connects the members, in words. */
const char *tutti_mpi_fabric(const tutti_mpi_group *group);

/* Leaves in order. */
void tutti_mpi_close(tutti_mpi_group *group);

#endif
