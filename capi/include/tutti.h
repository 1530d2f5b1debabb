/* Barriers and allgather of Tutti between the processes of a job, for C and C++.
 *
 * Link with libtutti_c.so or libtutti_c.a (the latter also wants -lpthread -ldl -lm).
 *
 * Every call but tutti_rank and tutti_size returns one of the codes below and never aborts. All
 * ranks of a job make the same calls in the same order. A job may be used by any thread, by one at
 * a time.
 */
#ifndef TUTTI_H
#define TUTTI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. tutti_message says more. */
enum tutti_code {
    TUTTI_OK = 0,
    /* The deadline passed; tutti_ranks are the absent. A barrier goes on when waited for again. */
    TUTTI_TIMEOUT = 1,
    /* Ranks are gone, tutti_ranks says which. The job cannot be used but to leave it. */
    TUTTI_DIED = 2,
    /* A barrier was entered and its end not waited for. */
    TUTTI_BUSY = 3,
    /* An argument makes no sense. */
    TUTTI_ARGUMENT = 4,
    /* Anything else. */
    TUTTI_FAILED = 5,
    /* A bug of the library. The job cannot be used any more. */
    TUTTI_PANICKED = 6
};

/* A timeout that never comes. */
#define TUTTI_NEVER UINT64_MAX

/* This process's place in a job. */
typedef struct tutti_job tutti_job;

/* Joins the job that the launcher's environment describes (music run, mpirun, srun; a job of one
 * without any). Collective; once per process. On failure *job is NULL and `message`, if not NULL,
 * gets a line of at most `capacity` bytes with its terminating zero. */
int tutti_join(tutti_job **job, char *message, size_t capacity);

/* This rank, from 0, and how many there are; 0 for NULL. */
uint32_t tutti_rank(const tutti_job *job);
uint32_t tutti_size(const tutti_job *job);

/* Returns when every rank has called it. After TUTTI_TIMEOUT call it again to go on. */
int tutti_barrier(tutti_job *job, uint64_t timeout_ns);

/* The same in two halves. tutti_arrive never waits; tutti_test sets *done to 0 or 1; tutti_wait may
 * be called again after TUTTI_TIMEOUT. */
int tutti_arrive(tutti_job *job);
int tutti_test(tutti_job *job, int *done);
int tutti_wait(tutti_job *job, uint64_t timeout_ns);

/* Everyone's `bytes` bytes at `mine`, in the order of ranks, to `all`, which holds tutti_size times
 * `bytes`. `bytes` is the same on all ranks; the two ranges do not overlap. */
int tutti_allgather(tutti_job *job, const void *mine, size_t bytes, void *all,
                    uint64_t timeout_ns);

/* The ranks that the last TUTTI_TIMEOUT or TUTTI_DIED was about: how many there are, the first
 * `capacity` of them in `ranks`. */
size_t tutti_ranks(const tutti_job *job, uint32_t *ranks, size_t capacity);

/* The last failure of a job in words, valid until the next call; never NULL. */
const char *tutti_message(const tutti_job *job);

/* Leaves in order and frees the job. Does not wait for the others. NULL is fine. */
int tutti_leave(tutti_job *job);

#ifdef __cplusplus
}
#endif

#endif
