/* The two populations of benches/src/workload.rs, for C and C++: the same draw, the same spikes.
 *
 * N neurons fire with probability rate * tick in each tick; the pattern of PATTERN_TICKS ticks is
 * drawn before the measured loop and repeats. Which ids a receiving rank maps follows from the
 * topology alone.
 */
#ifndef TUTTI_BENCH_WORKLOAD_H
#define TUTTI_BENCH_WORKLOAD_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PATTERN_TICKS = 64 };
static const double TICK_S = 0.005;
static const uint64_t SPIKE_SALT = 1, INPUT_SALT = 2;

typedef struct {
    uint32_t neurons, inputs, senders, receivers, ticks, warmup;
    char topology[16];
} Workload;

typedef struct {
    uint32_t id;
    double offset; /* seconds from the start of the tick */
} Spike;

/* What one rank has to say at the end; the parent adds the ranks up. */
typedef struct {
    uint64_t start_ns, end_ns, inserted, delivered, ids, late, expected, expected_ids;
} Tally;

static inline uint64_t mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t draw(uint64_t salt, uint64_t a, uint64_t b) {
    return mix(mix(mix(salt) ^ a) ^ b);
}

/* 10 Hz in ticks of 5 ms: one tick in twenty. */
static inline int fires(uint32_t tick, uint32_t neuron, double *offset) {
    uint64_t value = draw(SPIKE_SALT, tick, neuron);
    *offset = TICK_S * (double)(value & 0xff) / 256.0;
    return (value >> 32) < UINT64_C(0x100000000) / 20;
}

static inline uint32_t slice_start(uint32_t neurons, uint32_t part, uint32_t parts) {
    return (uint32_t)((uint64_t)neurons * part / parts);
}

/* The spikes of one tick of the pattern among the neurons from..to; at most to - from of them. */
static inline uint32_t spikes_of(uint32_t tick, uint32_t from, uint32_t to, Spike *into) {
    uint32_t count = 0;
    for (uint32_t neuron = from; neuron < to; neuron++) {
        double offset;
        if (fires(tick % PATTERN_TICKS, neuron, &offset)) {
            into[count].id = neuron;
            into[count++].offset = offset;
        }
    }
    return count;
}

/* One byte per neuron: whether a receiving rank maps it. */
static inline void mapped_ids(const Workload *w, uint32_t receiver, unsigned char *mapped) {
    uint32_t from = slice_start(w->neurons, receiver, w->receivers);
    uint32_t to = slice_start(w->neurons, receiver + 1, w->receivers);
    memset(mapped, strcmp(w->topology, "all-to-all") == 0, w->neurons);
    for (uint32_t j = from; j < to; j++) {
        if (strcmp(w->topology, "one-to-one") == 0) mapped[j] = 1;
        if (strcmp(w->topology, "random") != 0) continue;
        for (uint32_t k = 0; k < w->inputs; k++) mapped[draw(INPUT_SALT, j, k) % w->neurons] = 1;
    }
}

/* What a receiver must have got after all ticks. */
static inline void expect(const Workload *w, const unsigned char *mapped, Tally *tally) {
    Spike *spikes = (Spike *)malloc(w->neurons * sizeof *spikes);
    for (uint32_t p = 0; p < PATTERN_TICKS && p < w->ticks; p++) {
        uint64_t times = (w->ticks - p + PATTERN_TICKS - 1) / PATTERN_TICKS;
        uint32_t count = spikes_of(p, 0, w->neurons, spikes);
        for (uint32_t i = 0; i < count; i++) {
            if (!mapped[spikes[i].id]) continue;
            tally->expected += times;
            tally->expected_ids += times * spikes[i].id;
        }
    }
    free(spikes);
}

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void print_tally(const Tally *t) {
    printf("{\"start_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 ",\"inserted\":%" PRIu64
           ",\"delivered\":%" PRIu64 ",\"ids\":%" PRIu64 ",\"late\":%" PRIu64
           ",\"expected\":%" PRIu64 ",\"expected_ids\":%" PRIu64 "}\n",
           t->start_ns, t->end_ns, t->inserted, t->delivered, t->ids, t->late, t->expected,
           t->expected_ids);
    fflush(stdout);
}

/* NEURONS INPUTS SENDERS RECEIVERS TICKS WARMUP TOPOLOGY from `at` on; 0 if they are incomplete. */
static inline int parse_workload(int argc, char **argv, int at, Workload *w) {
    if (argc < at + 7) return 0;
    uint32_t *numbers[] = {&w->neurons, &w->inputs, &w->senders,
                           &w->receivers, &w->ticks, &w->warmup};
    for (int i = 0; i < 6; i++) *numbers[i] = (uint32_t)strtoul(argv[at + i], NULL, 10);
    snprintf(w->topology, sizeof w->topology, "%s", argv[at + 6]);
    return w->neurons > 0 && w->senders > 0 && w->receivers > 0;
}

#endif
