// Turns CUPTI's records into ours (cupti/records.h) in the log of the calling thread, which is our worker.
// What was launched outside the recorded part of the run is omitted; what CUPTI could not time is counted.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/cupti/calls.h"
#include "profiler/cupti/library.h"
#include "profiler/cupti/records.h"
#include "profiler/inject/cuda_launches.h"

namespace shardscope::profiler::inject {

using cupti::CudaCalls;
using cupti::Cupti;

// Which of the calls to CUDA are worth a record (CudaCalls::IsWanted).
bool is_wanted_call(int domain, const char* name);

class CudaActivity {
  public:
    void init(const Cupti& cupti, CudaCalls& calls) {
        cupti_ = &cupti;
        calls_ = &calls;
    }
    CudaLaunches& launches() { return launches_; }

    void convert(const cupti::Api& api);
    void convert(const cupti::Kernel& kernel);
    void convert(const cupti::Memcpy& copy);
    void convert(const cupti::MemcpyPeer& copy);
    void convert(const cupti::Memset& set);
    void convert(const cupti::Synchronization& sync);
    void convert(const cupti::CudaEvent& event);
    void convert(const cupti::Memory& memory);
    void convert(const cupti::MemoryPool& pool);
    void convert(const cupti::Overhead& overhead);
    void convert(const cupti::GraphTrace& graph);
    void convert(const cupti::Device& device);
    void convert(const cupti::Context& context);
    void convert(const cupti::Stream& stream);
    void convert(const cupti::ExternalCorrelation&) {}  // not enabled

    // Decides about work whose launch has not been seen yet; call it once after each flush. `last`: no more
    // records follow, so that the work's own time decides if the launch was not seen.
    void settle(bool last);

    // Writes the current time of both clocks.
    static void write_clock();
    // Writes the counts of losses, if they have changed.
    void write_loss(std::uint64_t dropped_by_cupti);

  private:
    // The finished record of work that waits for its launch.
    struct Waiting {
        std::uint32_t correlation, rounds;
        RealTime start;
        alignas(8) std::byte record[256];
    };
    static constexpr std::size_t kMostWaiting = 1u << 15;

    template <typename Record>
    void write_work(const Record& record, RealTime start);
    void wait(const void* record, std::size_t bytes, std::uint32_t correlation, RealTime start);
    bool is_timed(std::uint64_t start, std::uint64_t end);

    template <typename Work>
    void convert_work(const Work& work);

    // The id of a kernel's name: cached by address, and checked against the text there.
    std::uint32_t kernel_name(const char* name);
    struct KnownName {
        const char* address = nullptr;
        char* text = nullptr;
        std::uint32_t id = 0;
    };

    const Cupti* cupti_ = nullptr;
    CudaCalls* calls_ = nullptr;
    CudaLaunches launches_;
    KnownName names_[1024] = {};
    Waiting* waiting_ = nullptr;
    std::size_t waiting_count_ = 0, waiting_room_ = 0;
    std::uint64_t untimed_ = 0, misplaced_ = 0, dropped_ = 0;
    std::uint64_t told_[3] = {};
};

}  // namespace shardscope::profiler::inject
