// One file of any foreign format into any sink; and where databases lie packed, their unpacked copy.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "traces/import/format.h"
#include "traces/import/input/importer.h"
#include "traces/store/sqlite/scratch_folder.h"

namespace shardscope::traces {

// Feeds the file to the sink by its format. Not for FileFormat::sqlite. Once the file itself said another
// rank than `request.rank` (facts.rank != facts.rows_rank), the caller starts again with a new sink.
FileFacts read_file(Input& input, FileFormat format, EventSink& sink, const FileRequest& request);

// The rank that a file's name tells: "rank3", "rank_3", "worker3"; -1 none.
int rank_of_name(const std::string& path);

// The number before the last extension, "trace_3.json"; -1 none.
int number_of_name(const std::string& path);

// A database that lay packed, in a folder of the owner's alone, gone with the scope.
class UnpackedDatabase {
  public:
    explicit UnpackedDatabase(Input& input);

    const std::string& path() const { return path_; }

  private:
    std::optional<ScratchFolder> folder_;
    std::string path_;
};

}  // namespace shardscope::traces
