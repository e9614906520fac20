// Parses many events at a time with simdjson: fast, but strict JSON only. Owns its parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "traces/import/kineto/trace_event.h"

namespace shardscope::traces::importer {

class EventBatchParser {
  public:
    EventBatchParser();
    ~EventBatchParser();
    EventBatchParser(const EventBatchParser&) = delete;
    EventBatchParser& operator=(const EventBatchParser&) = delete;

    // The number of bytes after the batch that must be readable.
    static std::size_t padding();

    // Passes the events of the JSON array `text` (other text may follow its end) to the handler and returns
    // how far it read: the offset of the last event passed on, or of the first one that is not JSON.
    struct Result {
        std::size_t at = 0;
        bool good = false;  // `at` is the start of the last event, which was passed on
        std::uint64_t events = 0;
    };
    // `offset`: position of `text` in the file. At least padding() bytes after `size` can be read.
    Result parse(const char* text, std::size_t size, std::uint64_t offset, EventHandler& handler);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces::importer
