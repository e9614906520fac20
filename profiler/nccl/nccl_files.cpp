#include "profiler/nccl/nccl_files.h"

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/import/topology/nccl_topology.h"
#include "traces/schema/text.h"
#include "traces/store/file_descriptor.h"

namespace shardscope::profiler {
namespace {

constexpr std::string_view kInfiniband = "infiniband", kNuma = "numa", kNic = "NIC";
constexpr const char* kTopologyFile = "NCCL_TOPO_DUMP_FILE";
constexpr const char* kGraphFile = "NCCL_GRAPH_DUMP_FILE";
constexpr const char* kRankSuffix = "_RANK";
constexpr std::size_t kMostDevices = 256;      // each pair is a row
constexpr off_t kMostBytes = off_t{16} << 20;  // a host of 16 GPUs takes some 30 KiB

// std::nullopt: there is none, or it is empty. Throws std::runtime_error if it is not a file of that kind.
// `own`: in our folder, where nothing is a link.
std::optional<std::string> read_dump(const std::string& path, bool own, std::int64_t since) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (own ? O_NOFOLLOW : 0);
    const traces::store::FileDescriptor file(::open(path.c_str(), flags));
    if (!file && errno == ENOENT) return {};
    struct stat facts;
    if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode))
        throw std::runtime_error("it cannot be read as a file");
    if (facts.st_size == 0 || (!own && facts.st_mtime < since)) return {};  // of an earlier job
    if (facts.st_size > kMostBytes) throw std::runtime_error("it is larger than 16 MiB");
    std::string text(static_cast<std::size_t>(facts.st_size), '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        size += static_cast<std::size_t>(got);
    }
    text.resize(size);
    return text;
}

}  // namespace

NcclFiles::NcclFiles(NcclFilesOptions options) : options_(std::move(options)), began_(std::time(nullptr)) {
    choose(kTopologyFile);
    choose(kGraphFile);
}

NcclFiles::~NcclFiles() = default;

void NcclFiles::choose(const char* variable) {
    if (const auto given = options_.environment(variable); given && !given->empty()) {
        files_[variable] = {*given, false};
        return;
    }
    if (!options_.writes) return;
    try {
        if (!folder_) folder_ = std::make_unique<PrivateFolder>("shardscope-nccl-", "lock");
    } catch (const std::runtime_error&) {
        return;
    }
    File& file = files_[variable] = {fmt::format("{}/{}.xml", folder_->path(), variable), true};
    variables_.emplace_back(variable, file.path);
    const std::string rank = std::string(variable) + kRankSuffix;
    if (options_.rank > 0 && !options_.environment(rank))
        variables_.emplace_back(rank, std::to_string(options_.rank));
}

// A file that the user has named may be on a disk that several hosts share: it is of the host that has the
// rank that writes it.
bool NcclFiles::may_read(const File& file, const std::string& variable) const {
    if (file.own || options_.rank < 0) return true;
    const auto rank = options_.environment(variable + kRankSuffix);
    return traces::schema::number_of<int>(rank.value_or("0")).value_or(0) == options_.rank;
}

void NcclFiles::know(const Samples& samples) {
    for (const traces::schema::DeviceRow& row : samples.devices) {
        devices_[row.kind].insert(row.number);
        if (row.kind == kInfiniband) adapters_[row.name] = row.number;
    }
    for (const traces::schema::TopologyRow& row : samples.topology) {
        if (row.link.empty()) continue;
        links_.emplace(row.from, row.to);
        links_.emplace(row.to, row.from);
    }
}

// NCCL numbers adapters in its own way: those that the sampler has found are known by their names. GPUs that
// it has not found are in other processes' parts of the trace.
void NcclFiles::add_devices(const traces::importer::Topology& topology,
                            traces::store::EventSink& sink) const {
    std::map<std::string, int> number_of;  // by NCCL's label of an adapter, "NIC0"
    for (const traces::schema::DeviceRow& row : topology.devices) {
        const auto found = devices_.find(row.kind);
        const auto adapter = adapters_.find(row.name);
        if (row.kind == kInfiniband && (adapter != adapters_.end() || found == devices_.end())) {
            number_of[fmt::format("{}{}", kNic, row.number)] =
                adapter != adapters_.end() ? adapter->second : row.number;
        }
        if (found == devices_.end() || (row.kind == kNuma && !found->second.contains(row.number)))
            sink.add(row);
    }
    for (traces::schema::TopologyRow row : topology.topology) {
        bool named = true;
        for (std::string* label : {&row.from, &row.to}) {
            if (!label->starts_with(kNic)) continue;
            const auto number = number_of.find(*label);
            named = named && number != number_of.end();
            if (number != number_of.end()) *label = fmt::format("{}{}", kNic, number->second);
        }
        if (named && !links_.contains({row.from, row.to})) sink.add(row);
    }
}

void NcclFiles::add_rows(traces::store::EventSink& sink, std::int64_t at, bool ended) {
    bool said = false;  // of the files together
    for (auto& [variable, file] : files_) {
        if (file.added || !may_read(file, variable)) continue;
        try {
            const auto text = read_dump(file.path, file.own, began_);
            if (!text) continue;
            const traces::importer::Topology topology =
                traces::importer::read_nccl_topology(*text, "it", options_.host);
            if (topology.devices.size() > kMostDevices)
                throw std::runtime_error(fmt::format("it has more than {} devices", kMostDevices));
            file.added = true;
            add_devices(topology, sink);
            for (const auto& [key, value] : topology.facts) sink.add(traces::schema::RunInfoRow{key, value});
        } catch (const std::exception& error) {
            if (!ended || std::exchange(said, true)) continue;
            sink.add(traces::schema::DiagnosticRow{
                at, traces::schema::Severity::information,
                fmt::format("what NCCL wrote for {} is omitted: {}", variable, error.what())});
        }
    }
}

}  // namespace shardscope::profiler
