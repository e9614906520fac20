// The table of trace formats: one row for each, in the order in which they are tried.
//
// A row has one function that recognizes the format by the file's first bytes (an SQLite file by its tables)
// and one that feeds the file's rows to a sink; input/importer.h describes its arguments and result.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/import/input/importer.h"
#include "traces/store/sqlite/scratch_folder.h"

namespace shardscope::traces::importer {

// What is known about a file before it is read.
class FileHead {
  public:
    FileHead(std::string_view head, std::string database) : bytes(head), database_(std::move(database)) {}

    const std::string_view bytes;  // the first 64 KiB, unpacked
    bool is_database() const { return !database_.empty(); }
    // Whether it is an SQLite file with a table whose name begins with `begin`. False if it cannot be
    // opened.
    bool has_table_like(std::string_view begin) const;

  private:
    std::string database_;
};

struct Importer {
    const char* name;   // singular, as `import` prints it: "Chrome trace"
    const char* reads;  // in a list of formats: "Kineto and Chrome traces (JSON)"; "": in another row's text
    bool (*knows)(const FileHead& head);
    // At most one of `read` and `read_database` is set; if neither is, the file is a database that is loaded
    // directly (store/load/loader.h).
    FileFacts (*read)(Input& input, store::EventSink& sink, const FileRequest& request);
    // `database`: its path; `name`: its name in messages.
    FileFacts (*read_database)(const std::string& database, const std::string& name, store::EventSink& sink,
                               const FileRequest& request);
};

// "databases of Shardscope, ..., Kineto and Chrome traces (JSON) and ..."
std::string readable_formats();

// A file of a known format and, for a packed database, its unpacked copy, which is in a folder that only its
// owner can read and that the destructor removes.
class KnownFile {
  public:
    // Throws StoreError if no row of the table recognizes it.
    explicit KnownFile(Input input);

    const Importer& importer() const { return *importer_; }
    bool is_loaded_as_it_is() const { return !importer_->read && !importer_->read_database; }
    Input& input() { return input_; }
    // The path of a database that can be opened: the file itself, or its copy.
    const std::string& database() const { return database_; }

    // Feeds it to the sink. If the file records a rank other than `request.rank` (facts.rank !=
    // facts.rows_rank), the caller reopens the file and starts again with a new sink.
    FileFacts read(store::EventSink& sink, const FileRequest& request);

  private:
    void unpack();

    Input input_;
    const Importer* importer_ = nullptr;
    std::optional<store::ScratchFolder> folder_;
    std::string database_;
};

// Whether the beginning of the file looks like a trace.
bool is_trace(const std::string& path);

}  // namespace shardscope::traces::importer
