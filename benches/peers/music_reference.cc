// What does the reference implementation of MUSIC need for the same spikes?
//
// Written to the public API of MUSIC 1.1.16 as Debian ships it (its communicators are those of the
// MPI C++ bindings). `music` starts it twice, as sender and as receiver:
//
//     mpirun -np 4 music bench.music
//
// with `args = "send|receive RANK_COUNT... "` written by spike_exchange. Each rank prints one tally.
#include <mpi.h>
#include <music.hh>

#include <vector>

extern "C" {
#include "workload.h"
}

namespace {

class Counter : public MUSIC::EventHandlerGlobalIndex {
public:
    Counter(Tally &tally) : tally_(tally) {}
    void operator()(double time, MUSIC::GlobalIndex id) override {
        tally_.delivered++;
        tally_.ids += static_cast<uint64_t>(static_cast<int>(id));
        // A spike of the present tick or later is in time; an older one should have been here.
        tally_.late += time < due_ - 1e-9;
    }
    void due(double time) { due_ = time; }

private:
    Tally &tally_;
    double due_ = 0;
};

void send(MUSIC::Setup *setup, const Workload &w, Tally &tally) {
    uint32_t rank = static_cast<uint32_t>(setup->communicator().Get_rank());
    uint32_t from = slice_start(w.neurons, rank, w.senders);
    uint32_t to = slice_start(w.neurons, rank + 1, w.senders);
    std::vector<std::vector<Spike>> pattern(PATTERN_TICKS);
    for (uint32_t p = 0; p < PATTERN_TICKS; p++) {
        pattern[p].resize(to - from);
        pattern[p].resize(spikes_of(p, from, to, pattern[p].data()));
    }
    MUSIC::EventOutputPort *port = setup->publishEventOutput("out");
    MUSIC::LinearIndex map(MUSIC::GlobalIndex(static_cast<int>(from)), static_cast<int>(to - from));
    port->map(&map, MUSIC::Index::GLOBAL, 1);
    MUSIC::Runtime runtime(setup, TICK_S);
    for (uint32_t tick = 0; tick < w.ticks; tick++) {
        if (tick == w.warmup) tally.start_ns = now_ns();
        double start = tick * TICK_S;
        for (const Spike &spike : pattern[tick % PATTERN_TICKS]) {
            port->insertEvent(start + spike.offset,
                              MUSIC::GlobalIndex(static_cast<int>(spike.id)));
        }
        tally.inserted += pattern[tick % PATTERN_TICKS].size();
        runtime.tick();
    }
    tally.end_ns = now_ns();
    runtime.finalize();
}

void receive(MUSIC::Setup *setup, const Workload &w, Tally &tally) {
    uint32_t rank = static_cast<uint32_t>(setup->communicator().Get_rank());
    std::vector<unsigned char> mapped(w.neurons);
    mapped_ids(&w, rank, mapped.data());
    std::vector<MUSIC::IndexInterval> intervals;
    for (uint32_t id = 0; id < w.neurons; id++) {
        if (!mapped[id]) continue;
        uint32_t end = id;
        while (end < w.neurons && mapped[end]) end++;
        intervals.push_back(MUSIC::IndexInterval(static_cast<int>(id), static_cast<int>(end), 0));
        id = end;
    }
    MUSIC::EventInputPort *port = setup->publishEventInput("in");
    Counter counter(tally);
    MUSIC::PermutationIndex map(intervals);
    port->map(&map, static_cast<MUSIC::EventHandlerGlobalIndex *>(&counter), 0.0, 1);
    MUSIC::Runtime runtime(setup, TICK_S);
    for (uint32_t tick = 0; tick < w.ticks; tick++) {
        if (tick == w.warmup) tally.start_ns = now_ns();
        counter.due(runtime.time() + TICK_S);
        runtime.tick();
    }
    tally.end_ns = now_ns();
    counter.due(0);
    runtime.finalize();
    expect(&w, mapped.data(), &tally);
}

}  // namespace

int main(int argc, char **argv) {
    MUSIC::Setup *setup = new MUSIC::Setup(argc, argv);
    Workload w = {};
    if (argc < 2 || !parse_workload(argc, argv, 2, &w)) {
        fprintf(stderr, "usage: %s send|receive NEURONS INPUTS SENDERS RECEIVERS TICKS WARMUP "
                        "TOPOLOGY\n", argv[0]);
        return 2;
    }
    Tally tally = {};
    if (strcmp(argv[1], "send") == 0) {
        send(setup, w, tally);
    } else {
        receive(setup, w, tally);
    }
    print_tally(&tally);
    return 0;
}
