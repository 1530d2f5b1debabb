/* What does plain MPI need to move the spikes that a music runtime moves?
 *
 *     mpirun -np 4 mpi_spikes pairwise|allgather NEURONS INPUTS SENDERS RECEIVERS TICKS WARMUP TOPOLOGY
 *
 * The first SENDERS ranks send. Pairwise: the sender filters by the receiver's ids and posts one
 * message per pair and tick. Allgather: counts, then MPI_Allgatherv over all ranks, filtered by the
 * receiver. No schedule, no ports, no index maps: the floor for anything built on MPI.
 * Each rank prints one tally.
 */
#define _GNU_SOURCE
#include <mpi.h>

#include "workload.h"

typedef struct {
    double time;
    uint64_t id;
} Event;

static int rank, ranks;
static Workload w;
static Tally tally;
static unsigned char *mapped;  /* a receiver's own ids; a sender's table of all receivers' ids */
static Spike *pattern[PATTERN_TICKS];
static uint32_t pattern_count[PATTERN_TICKS];
static Event *out, *in;
static int *counts, *starts;

static void *room(size_t bytes) {
    void *memory = calloc(bytes + 1, 1);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 2);
    return memory;
}

static int sends(void) { return (uint32_t)rank < w.senders; }

static void take(const Event *events, int count, double tick_start) {
    for (int i = 0; i < count; i++) {
        if (!mapped[events[i].id]) continue;
        tally.delivered++;
        tally.ids += events[i].id;
        tally.late += events[i].time < tick_start;
    }
}

static int fill(uint32_t tick, const unsigned char *wanted, Event *into) {
    int count = 0;
    const Spike *spikes = pattern[tick % PATTERN_TICKS];
    for (uint32_t i = 0; i < pattern_count[tick % PATTERN_TICKS]; i++) {
        if (wanted && !wanted[spikes[i].id]) continue;
        into[count].time = tick * TICK_S + spikes[i].offset;
        into[count++].id = spikes[i].id;
    }
    return count;
}

static void pairwise_tick(uint32_t tick, MPI_Request *requests) {
    if (sends()) {
        Event *at = out;
        for (uint32_t r = 0; r < w.receivers; r++) {
            int count = fill(tick, mapped + (size_t)r * w.neurons, at);
            MPI_Isend(at, count * (int)sizeof *at, MPI_BYTE, (int)(w.senders + r), 0,
                      MPI_COMM_WORLD, &requests[r]);
            at += count;
        }
        MPI_Waitall((int)w.receivers, requests, MPI_STATUSES_IGNORE);
        tally.inserted += pattern_count[tick % PATTERN_TICKS];
        return;
    }
    for (uint32_t s = 0; s < w.senders; s++) {
        MPI_Status status;
        int received;
        MPI_Recv(in, (int)(w.neurons * sizeof *in), MPI_BYTE, (int)s, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &received);
        take(in, received / (int)sizeof *in, tick * TICK_S);
    }
}

static void allgather_tick(uint32_t tick) {
    int mine = sends() ? fill(tick, NULL, out) * (int)sizeof *out : 0;
    MPI_Allgather(&mine, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    int total = 0;
    for (int r = 0; r < ranks; r++) {
        starts[r] = total;
        total += counts[r];
    }
    MPI_Allgatherv(out, mine, MPI_BYTE, in, counts, starts, MPI_BYTE, MPI_COMM_WORLD);
    if (sends()) {
        tally.inserted += pattern_count[tick % PATTERN_TICKS];
    } else {
        take(in, total / (int)sizeof *in, tick * TICK_S);
    }
}

static void prepare(void) {
    uint32_t from = 0, to = 0;
    if (sends()) {
        from = slice_start(w.neurons, (uint32_t)rank, w.senders);
        to = slice_start(w.neurons, (uint32_t)rank + 1, w.senders);
        mapped = room((size_t)w.neurons * w.receivers);
        for (uint32_t r = 0; r < w.receivers; r++) mapped_ids(&w, r, mapped + (size_t)r * w.neurons);
    } else {
        mapped = room(w.neurons);
        mapped_ids(&w, (uint32_t)rank - w.senders, mapped);
    }
    for (uint32_t p = 0; p < PATTERN_TICKS; p++) {
        pattern[p] = room((to - from) * sizeof(Spike));
        pattern_count[p] = spikes_of(p, from, to, pattern[p]);
    }
    out = room((size_t)w.neurons * w.receivers * sizeof *out);
    in = room((size_t)w.neurons * sizeof *in);
    counts = room((size_t)ranks * sizeof *counts);
    starts = room((size_t)ranks * sizeof *starts);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 2 || !parse_workload(argc, argv, 2, &w) ||
        (uint32_t)ranks != w.senders + w.receivers) {
        fprintf(stderr, "usage: mpirun -np SENDERS+RECEIVERS %s pairwise|allgather NEURONS INPUTS "
                        "SENDERS RECEIVERS TICKS WARMUP TOPOLOGY\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int pairwise = strcmp(argv[1], "pairwise") == 0;
    prepare();
    MPI_Request *requests = room(w.receivers * sizeof *requests);
    MPI_Barrier(MPI_COMM_WORLD);
    for (uint32_t tick = 0; tick < w.ticks; tick++) {
        if (tick == w.warmup) tally.start_ns = now_ns();
        if (pairwise) {
            pairwise_tick(tick, requests);
        } else {
            allgather_tick(tick);
        }
    }
    tally.end_ns = now_ns();
    if (!sends()) expect(&w, mapped, &tally);
    print_tally(&tally);
    MPI_Finalize();
    return 0;
}
