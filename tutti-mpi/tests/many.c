/* Barriers and gathers of many ranks: an unmodified program. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, round, from;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long *all = malloc(sizeof *all * (size_t)size);
    for (round = 0; round < 30; round++) {
        long mine = rank * 1000L + round;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Allgather(&mine, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD);
        for (from = 0; from < size; from++)
            if (all[from] != from * 1000L + round) {
                fprintf(stderr, "many: rank %d: a wrong value of %d\n", rank, from);
                MPI_Abort(MPI_COMM_WORLD, 3);
            }
    }
    free(all);
    if (rank == 0)
        printf("many: %d ranks, all as it should be\n", size);
    MPI_Finalize();
    return 0;
}
