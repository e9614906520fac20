// Sends what ran on a device to a recorder, as rows gathered into batches that the recorder's writer adds to
// its sink. One thread adds; times are trace time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "profiler/recorder/cuda_rows.h"
#include "profiler/recorder/recorder.h"

namespace shardscope::profiler {

struct CuptiKernel {
    traces::schema::KernelRow row;
    std::uint32_t name = 0;  // CuptiRows::name(); the row's names come from it
};
using CuptiWork = std::variant<CuptiKernel, traces::schema::MemcpyRow, traces::schema::MemsetRow>;

class CuptiRows {
  public:
    explicit CuptiRows(Recorder& recorder);

    // The number of a kernel's symbol, which may be null.
    std::uint32_t name(const char* symbol);

    // Waits if the recorder's writer lags far behind (kMostUnwritten rows).
    void add(const CuptiWork& work);
    // Hands over the rows that were added.
    void flush();

  private:
    static constexpr std::size_t kBatch = 4096;
    static constexpr std::int64_t kMostUnwritten = 1 << 18;  // about 64 MiB

    struct Batch {
        std::vector<std::string> symbols;  // the new ones, in the order of their numbers
        std::vector<CuptiWork> work;
    };
    // The writer's end; it may outlive this object.
    struct Writer {
        std::vector<SymbolNames> names{1};  // by number
        void write(const Batch& batch, traces::store::EventSink& sink);
        std::atomic<std::int64_t> unwritten{0};
    };

    Recorder& recorder_;
    std::shared_ptr<Writer> writer_ = std::make_shared<Writer>();
    std::shared_ptr<Batch> batch_ = std::make_shared<Batch>();
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace shardscope::profiler
