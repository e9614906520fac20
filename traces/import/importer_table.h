// The table of what a trace file can be: one row for each format, in the order in which they are asked.
//
// A row is one function that knows the format by the file's first bytes (of an SQLite file by its tables) and
// one that feeds its rows to a sink; input/importer.h says what that is given and answers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "traces/import/input/importer.h"
#include "traces/store/sqlite/scratch_folder.h"

namespace shardscope::traces {

// What a file shows of itself before it is read.
class FileHead {
  public:
    FileHead(std::string_view head, std::string database) : bytes(head), database_(std::move(database)) {}

    const std::string_view bytes;  // the first 64 KiB, unpacked
    bool is_database() const { return !database_.empty(); }
    // Of an SQLite file, whether one of its tables has a name that begins so. False where it cannot be
    // opened.
    bool has_table_like(std::string_view begin) const;

  private:
    std::string database_;
};

struct Importer {
    const char* name;  // of one file, as `import` prints it: "Chrome trace"
    const char*
        reads;  // in a list of what can be read: "Kineto and Chrome traces (JSON)"; "": another row says it
    bool (*knows)(const FileHead& head);
    // One of them, or neither: a database that is loaded as it is (store/load/loader.h).
    FileFacts (*read)(Input& input, EventSink& sink, const FileRequest& request);
    // `database`: where it lies; `name`: what messages call it.
    FileFacts (*read_database)(const std::string& database, const std::string& name, EventSink& sink,
                               const FileRequest& request);
};

std::span<const Importer> importers();
// "databases of Shardscope, ..., Kineto and Chrome traces (JSON) and ..."
std::string readable_formats();

// A file, and where it is a database that lay packed, its unpacked copy: in a folder of the owner's alone,
// gone with the scope.
class KnownFile {
  public:
    // Throws StoreError with a sentence where no row knows it.
    explicit KnownFile(Input input);

    const Importer& importer() const { return *importer_; }
    bool is_loaded_as_it_is() const { return !importer_->read && !importer_->read_database; }
    Input& input() { return input_; }
    // A database that can be opened: the file itself, or its copy.
    const std::string& database() const { return database_; }

    // Feeds it to the sink. Once the file itself said another rank than `request.rank` (facts.rank !=
    // facts.rows_rank), the caller starts again with the file opened anew and a new sink.
    FileFacts read(EventSink& sink, const FileRequest& request);

  private:
    void unpack();

    Input input_;
    const Importer* importer_ = nullptr;
    std::optional<ScratchFolder> folder_;
    std::string database_;
};

// Whether the file begins as a trace would.
bool is_trace(const std::string& path);

}  // namespace shardscope::traces
