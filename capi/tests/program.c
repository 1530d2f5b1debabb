/* A rank that uses everything of tutti.h. With the argument "die", rank 0 kills itself half-way. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tutti.h"

#define MINUTE UINT64_C(60000000000)

#define CHECK(holds)                                                                               \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            fprintf(stderr, "rank %u, line %d: %s (%s)\n", tutti_rank(job), __LINE__, #holds,      \
                    tutti_message(job));                                                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv)
{
    const int dies = argc > 1 && strcmp(argv[1], "die") == 0;
    char why[256] = "";
    tutti_job *job = NULL;
    if (tutti_join(&job, why, sizeof why) != TUTTI_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    uint32_t rank = tutti_rank(job), size = tutti_size(job);
    uint64_t *all = calloc(size, sizeof *all);

    CHECK(tutti_join(NULL, NULL, 0) == TUTTI_ARGUMENT);
    CHECK(tutti_barrier(NULL, 0) == TUTTI_ARGUMENT);
    CHECK(tutti_wait(job, MINUTE) == TUTTI_ARGUMENT);
    CHECK(strstr(tutti_message(job), "tutti_arrive") != NULL);
    CHECK(tutti_allgather(job, NULL, 8, all, MINUTE) == TUTTI_ARGUMENT);
    CHECK(tutti_allgather(job, NULL, 0, NULL, MINUTE) == TUTTI_OK);
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t mine = round * 1000 + rank;
        int done = 0;
        CHECK(tutti_barrier(job, MINUTE) == TUTTI_OK);
        CHECK(tutti_arrive(job) == TUTTI_OK);
        CHECK(tutti_allgather(job, &mine, sizeof mine, all, MINUTE) == TUTTI_OK);
        for (uint32_t other = 0; other < size; other++)
            CHECK(all[other] == round * 1000 + other);
        while (!done)
            CHECK(tutti_test(job, &done) == TUTTI_OK);
        CHECK(tutti_wait(job, TUTTI_NEVER) == TUTTI_OK);
    }
    if (size > 1) {
        /* Rank 0 comes only after the others have seen that it is absent. */
        uint32_t absent[2] = {9, 9};
        if (rank != 0) {
            CHECK(tutti_arrive(job) == TUTTI_OK);
            CHECK(tutti_wait(job, 1000000) == TUTTI_TIMEOUT);
            CHECK(tutti_ranks(job, NULL, 0) >= 1 && tutti_ranks(job, absent, 2) >= 1);
            CHECK(absent[0] == 0);
            CHECK(tutti_barrier(job, 0) == TUTTI_BUSY);
        }
        /* The allgather lets rank 0 go on only once all have seen it. */
        CHECK(tutti_allgather(job, &rank, sizeof rank, all, MINUTE) == TUTTI_OK);
        if (dies && rank == 0)
            raise(SIGKILL);
        if (dies) {
            CHECK(tutti_wait(job, MINUTE) == TUTTI_DIED);
            CHECK(tutti_ranks(job, absent, 2) == 1 && absent[0] == 0);
            CHECK(tutti_barrier(job, MINUTE) == TUTTI_DIED);
            free(all);
            return tutti_leave(job) == TUTTI_PANICKED;
        }
        if (rank == 0)
            CHECK(tutti_arrive(job) == TUTTI_OK);
        CHECK(tutti_wait(job, MINUTE) == TUTTI_OK);
    }
    free(all);
    return tutti_leave(job);
}
