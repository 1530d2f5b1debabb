/* The communicators of this process, and whether their calls are ours. */
#ifndef TUTTI_MPI_TAKEN_H
#define TUTTI_MPI_TAKEN_H

#include <mpi.h>

#include "group.h"

#define EXPORTED __attribute__((visibility("default")))

enum phase {
    /* Not asked yet. */
    COUNTING,
    OURS,
    THEIRS
};

struct taken {
    enum phase phase;
    /* Calls before the members were asked. */
    int calls;
    int rank;
    int size;
    tutti_mpi_group *group;
    /* For allgatherv, one of each a member: its bytes, where they go, and where they are packed. */
    size_t *lengths;
    ptrdiff_t *starts;
    ptrdiff_t *packed;
    /* What was done, for the report. */
    unsigned long barriers;
    unsigned long gathers;
    unsigned long left;
    int is_reported;
    char name[MPI_MAX_OBJECT_NAME];
    char why[160];
    struct taken *next;
};

/* What is known of a communicator if this call on it is ours; NULL if it is MPI's. Every member
 * gets the same answer for the same call. */
struct taken *tutti_mpi_taken(MPI_Comm comm);

/* Counts a call that is MPI's although its communicator is ours. */
void tutti_mpi_left(struct taken *taken);

/* Tells of a failure of ours, and what the communicator's error handler makes of it. */
int tutti_mpi_failed(struct taken *taken, MPI_Comm comm, const char *call);

#endif
