// Columns kept in a file next to the trace, to be mapped into memory and used in place. The rows remain the
// truth: the file may be deleted at any time, and one that is damaged, of another trace or of another version
// is as good as none. Every byte is summed before it is used, and every index is checked against what it
// points to, so that not even a forged file leads outside a column. The sums are taken with reads, without
// the mapping: memory holds only the pages that are looked at later. Like SQLite's own shared memory, a file
// in use must not be truncated; a new one replaces it by renaming.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "traces/store/columns/column.h"
#include "traces/store/columns/column_bound.h"
#include "traces/store/file_descriptor.h"
#include "traces/store/trace_identity.h"

namespace shardscope::traces::store {

// Where the columns of a trace are kept: "run.sqlite.shardscope-columns".
std::string column_path(const std::string& trace);

class ColumnFile : public std::enable_shared_from_this<ColumnFile> {
  public:
    // nullptr unless there is such a file of this very trace. Throws std::bad_alloc.
    static std::shared_ptr<const ColumnFile> open(const std::string& trace, const TraceIdentity& identity);
    ~ColumnFile();
    ColumnFile(const ColumnFile&) = delete;
    ColumnFile& operator=(const ColumnFile&) = delete;

    bool has(std::string_view name) const { return parts_.contains(name); }
    std::size_t columns() const { return parts_.size(); }
    // The number of values, 0 if there is no such column.
    template <typename T>
    std::size_t size(std::string_view name) const {
        const auto it = parts_.find(name);
        return it == parts_.end() ? 0 : it->second.bytes / sizeof(T);
    }

  private:
    friend class ColumnTaker;
    struct Part {
        std::uint64_t at = 0, bytes = 0, sum = 0;
    };
    ColumnFile() = default;
    bool read(const std::string& trace, const TraceIdentity& identity);

    FileDescriptor file_;
    std::byte* mapped_ = nullptr;
    std::size_t bytes_ = 0;
    std::map<std::string, Part, std::less<>> parts_;
};

// Takes columns from a file; each thread has its own.
class ColumnTaker {
  public:
    explicit ColumnTaker(const ColumnFile& file) : file_(file) {}

    // Checks a column later, when checked() is called, and makes `into` a view of it now.
    template <typename T>
    void take(std::string_view name, Column<T>& into, ColumnBound bound = {}) {
        const auto it = file_.parts_.find(name);
        if (it == file_.parts_.end() || it->second.bytes % sizeof(T) != 0) {
            if (it != file_.parts_.end()) failed_ = true;
            into = {};
            return;
        }
        const ColumnFile::Part& part = it->second;
        into = Column<T>({reinterpret_cast<T*>(file_.mapped_ + part.at), part.bytes / sizeof(T)},
                         file_.shared_from_this());
        waiting_.push_back({part, [bound](std::span<const std::byte> bytes, std::size_t at) {
                                return bound.holds(reinterpret_cast<const T*>(bytes.data()),
                                                   bytes.size() / sizeof(T), at / sizeof(T));
                            }});
    }
    // Whether every column taken since the last call is as it was written; reads them all, on all cores.
    bool checked();

  private:
    struct Waiting {
        ColumnFile::Part part;
        std::function<bool(std::span<const std::byte>, std::size_t at)> holds;  // bytes from there on
    };
    bool is_as_written(const Waiting& column, std::span<std::byte> chunk) const;

    const ColumnFile& file_;
    std::vector<Waiting> waiting_;
    bool failed_ = false;
};

// Writes such a file; it gets its name when it is complete.
class ColumnFileWriter {
  public:
    // `cancel`, if given, ends the writing early.
    ColumnFileWriter(const std::string& trace, const TraceIdentity& identity,
                     const std::atomic<bool>* cancel = nullptr);
    ~ColumnFileWriter();
    ColumnFileWriter(const ColumnFileWriter&) = delete;
    ColumnFileWriter& operator=(const ColumnFileWriter&) = delete;

    template <typename T>
    void add(const std::string& name, const Column<T>& column) {
        add_bytes(name, {reinterpret_cast<const std::byte*>(column.data()), column.size() * sizeof(T)});
    }
    void add_bytes(const std::string& name, std::span<const std::byte> bytes);
    // The file's bytes. Throws StoreError, as the others do: the disk is full, it was cancelled.
    std::int64_t finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces::store
