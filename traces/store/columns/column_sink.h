// The in-memory implementation of EventSink: add rows in any order, then take() the finished columns.
//
//   ColumnSink sink;
//   sink.add(RankRow{.rank = 0, .device = 0, ...});
//   sink.add(KernelRow{...});
//   std::unique_ptr<Trace> trace = sink.take();
//
// It owns everything until take(). One thread at a time. Times in nanoseconds, sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "traces/store/columns/trace.h"
#include "traces/store/error.h"
#include "traces/store/sink.h"

namespace shardscope::traces::store {

class NameFacts;
struct PendingRows;

class ColumnSink final : public EachRow<ColumnSink> {
  public:
    ColumnSink();
    // Goes on with a trace that has its columns already: takes only what is no column.
    explicit ColumnSink(std::unique_ptr<Trace> begun);
    ~ColumnSink() override;

    schema::StringId intern(std::string_view text) override;
    std::string_view text(schema::StringId id) const override;
    template <typename Row>
    void take(const Row& row);  // called by every add()
    void commit() override {}

    // Facts about the file that are not in any row.
    void set_path(std::string path);
    void set_schema_version(int version);
    void set_start_utc_ns(std::int64_t ns);
    void set_start_system_ns(std::int64_t ns);
    void set_ended(bool ended);
    void set_dropped(std::int64_t events);

    // Sorts and links everything and returns the trace; the sink is empty afterwards.
    // A rank that rows refer to without a RankRow is created with the number of its device.
    // Throws StoreError if a column cannot hold the trace (more than 65,535 ranks, streams or threads).
    std::unique_ptr<Trace> take();
    // The same for a trace that had its columns: they stay, and what else it had.
    std::unique_ptr<Trace> take_begun();

    // For a sink that takes a part of the rows: its strings begin with those of `whole`, in their order.
    void begin_with_strings_of(const ColumnSink& whole);
    std::size_t strings() const;  // their number
    // Adds what such a sink has taken, as if this one had taken it last; the other one is empty afterwards.
    // `common`: the number of strings with which it began. False: some of it would have been refused.
    bool append(ColumnSink& part, std::size_t common);
    // For the loader, which fills columns without the rows in between (pending_rows.h).
    PendingRows& pending();
    NameFacts& names();

  private:
    struct Impl;
    struct Keeping;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces::store
