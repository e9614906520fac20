// Counts rows by kind on their way to another sink, without those that a full trace refuses: for the last
// lines that shardscope-record prints.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "profiler/record/live_rows.h"
#include "traces/store/sink.h"
#include "traces/store/write/writer.h"

namespace shardscope::profiler {

struct RowCounts {
    std::int64_t ranges = 0;  // with marks
    std::int64_t kernels = 0, copies = 0, calls = 0, collectives = 0, samples = 0;
};

class CountingSink final : public traces::store::EachRow<CountingSink> {
  public:
    explicit CountingSink(traces::store::EventSink& sink) : sink_(sink) {}
    explicit CountingSink(traces::store::DatabaseWriter& writer) : sink_(writer), writer_(&writer) {}

    const RowCounts& counts() const { return counts_; }
    void show(LiveRows* live) { live_ = live; }  // every row from now on; null: none
    traces::schema::StringId intern(std::string_view text) override { return sink_.intern(text); }
    std::string_view text(traces::schema::StringId id) const override { return sink_.text(id); }
    void commit() override { sink_.commit(); }
    template <typename Row>
    void take(const Row& row) {
        const std::int64_t refused = this->refused();
        sink_.add(row);
        if (live_ != nullptr) show_row(row);
        if (this->refused() != refused) return;
        if constexpr (std::is_same_v<Row, traces::schema::RangeRow>) ++counts_.ranges;
        if constexpr (std::is_same_v<Row, traces::schema::KernelRow>) ++counts_.kernels;
        if constexpr (std::is_same_v<Row, traces::schema::MemcpyRow> ||
                      std::is_same_v<Row, traces::schema::MemsetRow>)
            ++counts_.copies;
        if constexpr (std::is_same_v<Row, traces::schema::RuntimeRow>) ++counts_.calls;
        if constexpr (std::is_same_v<Row, traces::schema::NcclOperationRow>) ++counts_.collectives;
        if constexpr (std::is_same_v<Row, traces::schema::SampleRow>) ++counts_.samples;
    }

  private:
    template <typename Row>
    void show_row(const Row& row) {
        if constexpr (std::is_same_v<Row, traces::schema::RankRow> ||
                      std::is_same_v<Row, traces::schema::NcclOperationRow>)
            live_->take(row);
        if constexpr (std::is_same_v<Row, traces::schema::CounterRow> ||
                      std::is_same_v<Row, traces::schema::RangeRow>)
            live_->take(row, sink_);
    }
    std::int64_t refused() const { return writer_ == nullptr ? 0 : writer_->refused_events(); }

    traces::store::EventSink& sink_;
    const traces::store::DatabaseWriter* writer_ = nullptr;
    RowCounts counts_;
    LiveRows* live_ = nullptr;
};

}  // namespace shardscope::profiler
