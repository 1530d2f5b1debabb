/* How long does MPI_Barrier, MPI_Allgather, a message or MPI_Fetch_and_op take, asked as benches/src/measure.rs asks ours?
 *
 *     mpirun -np 4 mpi_collectives barrier   0 10 50 50
 *     mpirun -np 4 mpi_collectives allgather BYTES REPETITIONS REPETITION_MS WARMUP_MS
 *
 * A figure is the largest mean over the ranks of back-to-back calls in one repetition. Single calls
 * are timed apart: from the last arrival to the last leave, and the skew between the leaves.
 * put is a message of MPI_Send there and back between two ranks, of which half is reported;
 * fetch_add is MPI_Fetch_and_op on a word of the last rank by rank 0, fetch_add_contended by all.
 * Prints one JSON object from rank 0; ends with 3 if a block of an allgather is wrong.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SINGLE_CALLS_MAX = 1000, REPETITIONS_MAX = 1000 };

static enum { BARRIER, ALLGATHER, PUT, FETCH_ADD, CONTENDED, UNKNOWN } question;
static const char *const names[] = {"barrier", "allgather", "put", "fetch_add",
                                    "fetch_add_contended"};
static int rank, ranks, is_allgather;
static MPI_Win window;
static uint64_t added, fetched;
static size_t bytes;
static unsigned char *mine, *all;
static uint64_t calls;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void ping_pong(void) {
    memset(mine, (int)(calls & 0xff), bytes < 8 ? bytes : 8);
    if (rank == 0) MPI_Send(mine, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(all, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(mine, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void fetch_add(void) {
    static const uint64_t one = 1;
    if (question == FETCH_ADD && rank != 0) return;
    MPI_Fetch_and_op(&one, &fetched, MPI_UINT64_T, ranks - 1, 0, MPI_SUM, window);
    MPI_Win_flush(ranks - 1, window);
    added++;
}

static void call(void) {
    calls++;
    if (question == PUT) {
        ping_pong();
        return;
    }
    if (question == FETCH_ADD || question == CONTENDED) {
        fetch_add();
        return;
    }
    if (!is_allgather) {
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    memset(mine, (int)((calls + (uint64_t)rank) & 0xff), bytes < 8 ? bytes : 8);
    MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* The blocks of the last call, or leave with 3. */
static void verify(void) {
    int is_put_wrong = question == PUT && all[0] != (unsigned char)(calls & 0xff);
    if (is_put_wrong || (question == FETCH_ADD && rank == 0 && fetched != added - 1)) {
        fprintf(stderr, "rank %d: wrong after %llu calls\n", rank, (unsigned long long)calls);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    for (int r = 0; is_allgather && bytes > 0 && r < ranks; r++) {
        unsigned char first = all[(size_t)r * bytes], last = all[(size_t)(r + 1) * bytes - 1];
        unsigned char expected = (unsigned char)((calls + (uint64_t)r) & 0xff);
        if (first != expected || (last != expected && bytes <= 8)) {
            fprintf(stderr, "rank %d: block %d is wrong after %llu calls\n", rank, r,
                    (unsigned long long)calls);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    }
}

static uint64_t timed_calls(uint64_t count) {
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < count; i++) call();
    return now_ns() - start;
}

/* Doubles the number of calls until they fill the warm-up; calls that fill one repetition. */
static uint64_t warm_up(uint64_t warmup_ns, uint64_t repetition_ns) {
    uint64_t count = 1;
    for (;;) {
        uint64_t spent = timed_calls(count);
        MPI_Bcast(&spent, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        if (spent >= warmup_ns) {
            uint64_t fitting = (uint64_t)((double)count * (double)repetition_ns / (double)spent);
            return fitting < 3 ? 3 : fitting;
        }
        count *= 2;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which this share of the sorted values lies, interpolated. */
static double quantile(const double *sorted, size_t count, double share) {
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    size_t above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

/* Enter and leave of single calls on every rank; latency and skew of each, sorted, on rank 0. */
static size_t single_calls(uint64_t wanted, double *latency, double *skew) {
    size_t count = wanted < SINGLE_CALLS_MAX ? (size_t)wanted : SINGLE_CALLS_MAX;
    uint64_t *times = calloc(2 * count, sizeof *times);
    uint64_t *gathered = calloc(2 * count * (size_t)ranks, sizeof *gathered);
    if (!times || !gathered) MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < count; i++) {
        times[2 * i] = now_ns();
        call();
        times[2 * i + 1] = now_ns();
    }
    MPI_Gather(times, (int)(2 * count), MPI_UINT64_T, gathered, (int)(2 * count), MPI_UINT64_T, 0,
               MPI_COMM_WORLD);
    for (size_t i = 0; rank == 0 && i < count; i++) {
        uint64_t arrived = 0, first = UINT64_MAX, last = 0;
        for (int r = 0; r < ranks; r++) {
            const uint64_t *pair = gathered + 2 * count * (size_t)r + 2 * i;
            if (pair[0] > arrived) arrived = pair[0];
            if (pair[1] < first) first = pair[1];
            if (pair[1] > last) last = pair[1];
        }
        latency[i] = last > arrived ? (double)(last - arrived) / 1000 : 0;
        if (question == PUT) latency[i] /= 2;
        skew[i] = (double)(last - first) / 1000;
    }
    qsort(latency, rank == 0 ? count : 0, sizeof *latency, compare);
    qsort(skew, rank == 0 ? count : 0, sizeof *skew, compare);
    free(times);
    free(gathered);
    return count;
}

static void report(const double *means, int repetitions, uint64_t per_repetition) {
    static double latency[SINGLE_CALLS_MAX], skew[SINGLE_CALLS_MAX], sorted[REPETITIONS_MAX];
    size_t singles = single_calls(per_repetition, latency, skew);
    verify();
    if (rank != 0) return;
    memcpy(sorted, means, (size_t)repetitions * sizeof *sorted);
    qsort(sorted, (size_t)repetitions, sizeof *sorted, compare);
    printf("{\"question\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"calls\":%llu,\"means_us\":[",
           names[question], ranks, bytes, (unsigned long long)per_repetition);
    for (int i = 0; i < repetitions; i++) printf("%s%.4f", i ? "," : "", means[i]);
    printf("],\"p25_us\":%.4f,\"p50_us\":%.4f,\"p75_us\":%.4f,"
           "\"call_p50_us\":%.4f,\"call_p99_us\":%.4f,\"skew_p50_us\":%.4f,\"skew_p99_us\":%.4f,"
           "\"checksum\":%llu}\n",
           quantile(sorted, (size_t)repetitions, 0.25), quantile(sorted, (size_t)repetitions, 0.5),
           quantile(sorted, (size_t)repetitions, 0.75), quantile(latency, singles, 0.5),
           quantile(latency, singles, 0.99), quantile(skew, singles, 0.5),
           quantile(skew, singles, 0.99), (unsigned long long)calls);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 6) {
        fprintf(stderr, "usage: %s QUESTION BYTES REPETITIONS REPETITION_MS WARMUP_MS\n",
                argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (question = BARRIER; question < UNKNOWN; question++)
        if (strcmp(argv[1], names[question]) == 0) break;
    is_allgather = question == ALLGATHER;
    bytes = strtoull(argv[2], NULL, 10);
    int repetitions = atoi(argv[3]);
    uint64_t repetition_ns = strtoull(argv[4], NULL, 10) * 1000000u;
    uint64_t warmup_ns = strtoull(argv[5], NULL, 10) * 1000000u;
    if (repetitions < 1 || repetitions > REPETITIONS_MAX) MPI_Abort(MPI_COMM_WORLD, 2);
    mine = calloc(bytes + 1, 1);
    all = calloc(bytes * (size_t)ranks + 1, 1);
    if (!mine || !all || question == UNKNOWN) MPI_Abort(MPI_COMM_WORLD, 2);
    if (question == PUT && (ranks != 2 || bytes == 0)) MPI_Abort(MPI_COMM_WORLD, 2);
    int has_window = question == FETCH_ADD || question == CONTENDED;
    if (has_window) {
        uint64_t *word;
        MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
        *word = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window);
    }

    uint64_t per_repetition = warm_up(warmup_ns, repetition_ns);
    static double means[REPETITIONS_MAX];
    for (int i = 0; i < repetitions; i++) {
        double mean = (double)timed_calls(per_repetition) / 1000 / (double)per_repetition;
        if (question == PUT) mean /= 2;
        verify();
        MPI_Allreduce(&mean, &means[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    report(means, repetitions, per_repetition);
    if (has_window) {
        MPI_Win_unlock_all(window);
        MPI_Win_free(&window);
    }
    MPI_Finalize();
    return 0;
}
