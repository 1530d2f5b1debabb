/* Calls that the preloaded library may take over, checked against what MPI promises. An unmodified
 * program: it knows nothing of the library. Usage: check SHARED_FILE */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank, size;
static volatile int *entered;

static void expect(int is_true, const char *what, int number)
{
    if (is_true)
        return;
    fprintf(stderr, "check: rank %d of %d: %s (%d)\n", rank, size, what, number);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

/* No barrier is left before all have entered it. */
static void barriers(int rounds)
{
    int round, other;
    for (round = 1; round <= rounds; round++) {
        if ((round + rank) % 7 == 0)
            usleep(200);
        entered[rank]++;
        MPI_Barrier(MPI_COMM_WORLD);
        for (other = 0; other < size; other++)
            expect(entered[other] >= entered[rank], "a barrier was left too early", other);
    }
}

static int value(int from, int round, int i)
{
    return from * 1000003 + round * 1009 + i;
}

static void even_gathers(MPI_Comm comm, int count, int round)
{
    int me, members, i, from;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    int *mine = malloc(sizeof *mine * (size_t)(count + 1));
    int *all = malloc(sizeof *all * (size_t)(count * members + 1));
    for (i = 0; i < count; i++)
        mine[i] = value(me, round, i);
    memset(all, -1, sizeof *all * (size_t)(count * members));
    all[count * members] = 77;
    MPI_Allgather(mine, count, MPI_INT, all, count, MPI_INT, comm);
    for (from = 0; from < members; from++)
        for (i = 0; i < count; i++)
            expect(all[from * count + i] == value(from, round, i), "a wrong value", from);
    expect(all[count * members] == 77, "written past the end", count);

    memset(all, -1, sizeof *all * (size_t)(count * members));
    memcpy(all + me * count, mine, sizeof *all * (size_t)count);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, comm);
    for (from = 0; from < members; from++)
        for (i = 0; i < count; i++)
            expect(all[from * count + i] == value(from, round, i), "a wrong value in place", from);
    free(mine);
    free(all);
}

/* Every second value of a row is sent; some ranks receive them side by side, others apart. */
static void apart_gathers(MPI_Comm comm, int count, int round)
{
    int me, members, i, from;
    MPI_Datatype every_second, resized;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    MPI_Type_vector(count, 1, 2, MPI_INT, &every_second);
    MPI_Type_create_resized(every_second, 0, (MPI_Aint)(2 * count * sizeof(int)), &resized);
    MPI_Type_commit(&resized);
    int *mine = malloc(2 * sizeof *mine * (size_t)count);
    int *all = malloc(2 * sizeof *all * (size_t)(count * members));
    for (i = 0; i < 2 * count; i++)
        mine[i] = i % 2 ? -1 : value(me, round, i / 2);
    for (i = 0; i < 2 * count * members; i++)
        all[i] = -5;
    if (me % 2) {
        MPI_Allgather(mine, 1, resized, all, 1, resized, comm);
        for (from = 0; from < members; from++)
            for (i = 0; i < 2 * count; i++)
                expect(all[2 * from * count + i] == (i % 2 ? -5 : value(from, round, i / 2)),
                       "a wrong value apart", from);
    } else {
        MPI_Allgather(mine, 1, resized, all, count, MPI_INT, comm);
        for (from = 0; from < members; from++)
            for (i = 0; i < count; i++)
                expect(all[from * count + i] == value(from, round, i), "a wrong value", from);
    }
    for (i = 0; i < 2 * count * members; i++)
        all[i] = -5;
    for (i = 0; i < count; i++)
        all[2 * me * count + 2 * i] = value(me, round, i);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, resized, comm);
    for (from = 0; from < members; from++)
        for (i = 0; i < 2 * count; i++)
            expect(all[2 * from * count + i] == (i % 2 ? -5 : value(from, round, i / 2)),
                   "a wrong value apart, in place", from);
    MPI_Type_free(&every_second);
    MPI_Type_free(&resized);
    free(mine);
    free(all);
}

/* Uneven parts in reverse order with a gap after each; some are empty. */
static void uneven_gathers(MPI_Comm comm, int count, int round)
{
    int me, members, i, from, at = 0;
    MPI_Datatype pair;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &members);
    int *counts = malloc(sizeof *counts * (size_t)members);
    int *starts = malloc(sizeof *starts * (size_t)members);
    for (from = members - 1; from >= 0; from--) {
        counts[from] = from % 3 == 1 ? 0 : count + from;
        starts[from] = at;
        at += counts[from] + 1;
    }
    int *mine = malloc(sizeof *mine * (size_t)(counts[me] + 1));
    double *pairs = malloc(2 * sizeof *pairs * (size_t)at);
    int *all = malloc(sizeof *all * (size_t)at);
    for (i = 0; i < counts[me]; i++)
        mine[i] = value(me, round, i);
    for (i = 0; i < at; i++)
        all[i] = -7;
    MPI_Allgatherv(mine, counts[me], MPI_INT, all, counts, starts, MPI_INT, comm);
    for (from = 0; from < members; from++) {
        for (i = 0; i < counts[from]; i++)
            expect(all[starts[from] + i] == value(from, round, i), "a wrong uneven value", from);
        expect(all[starts[from] + counts[from]] == -7, "written into a gap", from);
    }
    for (i = 0; i < at; i++)
        all[i] = -7;
    memcpy(all + starts[me], mine, sizeof *all * (size_t)counts[me]);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, starts, MPI_INT, comm);
    for (from = 0; from < members; from++)
        for (i = 0; i < counts[from]; i++)
            expect(all[starts[from] + i] == value(from, round, i), "wrong uneven, in place", from);

    MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    for (i = 0; i < 2 * at; i++)
        pairs[i] = -7;
    for (i = 0; i < counts[me]; i++) {
        pairs[2 * (starts[me] + i)] = value(me, round, i);
        pairs[2 * (starts[me] + i) + 1] = i;
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, pairs, counts, starts, pair, comm);
    for (from = 0; from < members; from++)
        for (i = 0; i < counts[from]; i++)
            expect(pairs[2 * (starts[from] + i)] == value(from, round, i) &&
                       pairs[2 * (starts[from] + i) + 1] == i,
                   "a wrong pair", from);
    MPI_Type_free(&pair);
    free(counts);
    free(starts);
    free(mine);
    free(pairs);
    free(all);
}

/* A message that needs its receiver, sent before a barrier and received after it: MPI must go on
 * while ranks wait in the barrier. */
static void rendezvous(int rounds)
{
    int bytes = 1 << 20, round, right = (rank + 1) % size, left = (rank + size - 1) % size;
    char *out = malloc((size_t)bytes), *in = malloc((size_t)bytes);
    for (round = 0; round < rounds; round++) {
        MPI_Request request;
        memset(out, rank + round, (size_t)bytes);
        MPI_Isend(out, bytes, MPI_BYTE, right, round, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, left, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(in[0] == (char)(left + round) && in[bytes - 1] == in[0], "a wrong message", round);

        /* Rank 0 waits in the barrier while the others still need its message. */
        if (rank == 0 && size > 1) {
            MPI_Isend(out, bytes, MPI_BYTE, 1, 1000 + round, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            if (rank == 1)
                MPI_Recv(in, bytes, MPI_BYTE, 0, 1000 + round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        /* And the other way round: a receive was posted before. */
        if (rank == 0 && size > 1) {
            MPI_Irecv(in, bytes, MPI_BYTE, 1, 2000 + round, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            if (rank == 1)
                MPI_Send(out, bytes, MPI_BYTE, 0, 2000 + round, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    free(out);
    free(in);
}

static void all_gathers(MPI_Comm comm, int rounds)
{
    const int counts[] = {1, 2, 100, 1000, 20000, 150000};
    int round;
    for (round = 0; round < rounds; round++) {
        int members, count = counts[round % 6];
        MPI_Comm_size(comm, &members);
        while (count > 1 && count * members > 400000)
            count /= 2;
        even_gathers(comm, count, round);
        apart_gathers(comm, count, round);
        uneven_gathers(comm, count, round);
    }
    even_gathers(comm, 0, 0);
}

static void sub_communicators(void)
{
    MPI_Comm part, copy, between, merged;
    int round, turn;
    for (turn = 0; turn < 3; turn++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
        all_gathers(part, 6);
        MPI_Comm_dup(part, &copy);
        for (round = 0; round < 10; round++)
            MPI_Barrier(copy);
        all_gathers(copy, 3);
        MPI_Comm_free(&part);
        MPI_Comm_free(&copy);
    }
    if (size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &between);
    for (round = 0; round < 10; round++)
        MPI_Barrier(between);
    MPI_Intercomm_merge(between, rank % 2, &merged);
    all_gathers(merged, 4);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    /* `part` is left to MPI_Finalize. */
    all_gathers(part, 4);
}

int main(int argc, char **argv)
{
    int file, level, wanted = argc > 2 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    MPI_Init_thread(&argc, &argv, wanted, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    file = open(argv[1], O_RDWR);
    expect(file >= 0, "no shared file", 0);
    entered = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    expect(entered != MAP_FAILED, "cannot map the shared file", 0);
    barriers(300);
    all_gathers(MPI_COMM_WORLD, 12);
    rendezvous(5);
    sub_communicators();
    barriers(100);
    if (rank == 0)
        printf("check: %d ranks, all as it should be\n", size);
    MPI_Finalize();
    return 0;
}
