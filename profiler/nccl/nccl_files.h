// What NCCL finds out about a host when a communicator starts: its topology and its rings. NCCL writes them
// into the files that two environment variables of its process name (NCCL_TOPO_DUMP_FILE,
// NCCL_GRAPH_DUMP_FILE), by the rank that two others say, 0 if they are not set. Each later communicator of
// that rank writes them again.
//
// A file that the user has named is read and left. Otherwise the files are in a private folder, which goes
// with this object. Nothing here fails: what cannot be read is one diagnostic.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiler/base/private_folder.h"
#include "profiler/sampler/samples.h"
#include "traces/store/sink.h"

namespace shardscope::traces::importer {
struct Topology;
}

namespace shardscope::profiler {

struct NcclFilesOptions {
    std::string host;
    int rank = -1;       // the job's rank of the program that NCCL is in; -1: unknown, or several
    bool writes = true;  // false: another process of this host has NCCL write files of ours
    // The environment that the program gets; std::nullopt: not set.
    std::function<std::optional<std::string>(const std::string& name)> environment;
};

class NcclFiles {
  public:
    explicit NcclFiles(NcclFilesOptions options);
    ~NcclFiles();

    // To add to the program's environment before NCCL starts. Empty if the user has named both files, or if
    // there is no room for a folder.
    const std::vector<std::pair<std::string, std::string>>& variables() const { return variables_; }

    // Devices and links that the trace has already: theirs are the numbers and the facts that count.
    void know(const Samples& samples);
    // Adds what NCCL has written by now and the sampler has not found, once: devices, links, and rings as a
    // fact of the run. `ended`: the program has, so that a file that cannot be read is a diagnostic at `at`;
    // until then NCCL may still be writing it.
    void add_rows(traces::store::EventSink& sink, std::int64_t at, bool ended);

  private:
    struct File {
        std::string path;
        bool own = false, added = false;
    };
    void choose(const char* variable);
    bool may_read(const File& file, const std::string& variable) const;
    void add_devices(const traces::importer::Topology& topology, traces::store::EventSink& sink) const;

    const NcclFilesOptions options_;
    const std::int64_t began_;               // seconds of CLOCK_REALTIME
    std::unique_ptr<PrivateFolder> folder_;  // null: no file is ours
    std::vector<std::pair<std::string, std::string>> variables_;
    std::map<std::string, File> files_;  // by variable
    // What the sampler has found.
    std::map<std::string, std::set<int>> devices_;         // numbers by kind
    std::map<std::string, int> adapters_;                  // InfiniBand: by name
    std::set<std::pair<std::string, std::string>> links_;  // from and to, both ways
};

}  // namespace shardscope::profiler
