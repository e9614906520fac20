// The database implementation of EventSink: one SQLite file, written while the job runs.
//
// WAL journal with synchronous=NORMAL, 16 KiB pages, whole arrays of rows per statement, no indexes while
// recording: committed rows survive a kill, and other processes may read them at any time. finish() makes a
// sorted, indexed, single file (finalize.h). The file is created for its owner only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "traces/store/error.h"
#include "traces/store/sink.h"
#include "traces/store/write/finalize.h"

namespace shardscope::traces::store {

struct WriterOptions {
    std::string path;
    bool overwrite = false;            // replace an existing file; otherwise its existence is an error
    std::int64_t start_utc_ns = 0;     // wall clock at capture time 0
    std::int64_t start_system_ns = 0;  // CLOCK_MONOTONIC at capture time 0
    std::int64_t first_ns = 0;         // capture time at which the file's events begin
    bool on_this_machine = true;       // the run is on this machine, whose facts are stored
};

class DatabaseWriter final : public EachRow<DatabaseWriter> {
  public:
    // Creates the file with all tables, enums and views. Throws StoreError,
    // whose text is one sentence that names the file.
    explicit DatabaseWriter(const WriterOptions& options);
    ~DatabaseWriter() override;  // without finish(): the file stays as after a crash (open, "did not end")

    schema::StringId intern(std::string_view text) override;
    std::string_view text(schema::StringId id) const override;
    void commit() override;
    // Implements every add().
    template <typename Row>
    void take(const Row& row);

    // Limits the size of the finished file (0, the initial value: no limit): events that would make it larger
    // are refused and counted, and names that only they need become empty. May be changed at any time. An
    // empty trace takes about half a megabyte.
    void limit_size(std::int64_t bytes);
    bool is_full() const;                 // an event was refused under the present limit
    std::int64_t refused_events() const;  // in all
    std::int64_t finished_bytes();  // an estimate of the finished file's size, rather too high than too low

    // Sets the wall clock at capture time 0, for a source that reports it late.
    void set_start_utc_ns(std::int64_t ns);

    // Stores the run's end, closes the file and finalizes it. `dropped` = events that were lost. If cancelled
    // or failed, the file contains all rows and can be finalized later (finalize_trace).
    FinalizeResult finish(std::int64_t duration_ns, std::int64_t dropped,
                          const FinalizeOptions& options = {});

    // Whether `path` could be created now (or replaced with `overwrite`); throws StoreError with the reason.
    // Touches nothing.
    static void check_output(const std::string& path, bool overwrite);

  private:
    struct Impl;
    struct Storing;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces::store
