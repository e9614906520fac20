#include "trainer/cuda/roll_call.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/core.h>
#include <unistd.h>

namespace shardscope::trainer::cuda {

namespace {

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] ? name.data() : "unknown";
}

// The boot id, which containers on one machine share; without it, the host name.
std::string machine() {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string number;
    return file >> number ? number : host_name();
}

std::string hexadecimal(const NcclId& id) {
    std::string text;
    for (const char each : id.internal) text += fmt::format("{:02x}", static_cast<unsigned char>(each));
    return text;
}

bool read_hexadecimal(const std::string& text, NcclId& id) {
    if (text.size() != 2 * sizeof id.internal) return false;
    for (std::size_t i = 0; i < sizeof id.internal; ++i) {
        unsigned value = 0;
        if (std::sscanf(text.c_str() + 2 * i, "%2x", &value) != 1) return false;
        id.internal[i] = static_cast<char>(value);
    }
    return true;
}

bool read_line(const std::string& line, Introduction& into) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "nccl") return static_cast<bool>(words >> into.nccl_version);
    if (what == "missing") {
        into.missing = line.substr(what.size() + 1);
        return true;
    }
    int number = 0;
    if (!(words >> number) || number < 0) return false;
    if (what == "rank") {
        GpuPlace& place = into.on[number];
        return static_cast<bool>(words >> place.machine >> place.bus >> place.ordinal >> place.host);
    }
    std::string digits;
    return what == "id" && words >> digits && read_hexadecimal(digits, into.ids[number]);
}

// Every rank's GPU, by rank.
std::map<int, GpuPlace> everywhere(const std::vector<Introduction>& all, int ranks) {
    std::map<int, GpuPlace> places;
    for (const Introduction& each : all) {
        for (const auto& [rank, place] : each.on) {
            if (!places.emplace(rank, place).second) {
                throw CudaError(
                    fmt::format("two processes say that they are rank {}; give each its own", rank));
            }
        }
    }
    for (int rank = 0; rank < ranks; ++rank) {
        if (!places.contains(rank)) {
            throw CudaError(fmt::format("no process is rank {} of {}; start one for each", rank, ranks));
        }
    }
    return places;
}

void check_libraries(const std::vector<Introduction>& all) {
    const int expected = all.front().nccl_version;
    for (const Introduction& each : all) {
        const int rank = each.on.empty() ? -1 : each.on.begin()->first;
        if (each.nccl_version == 0) throw CudaError(fmt::format("rank {}: {}", rank, each.missing));
        if (each.nccl_version == expected) continue;
        throw CudaError(fmt::format(
            "rank {} has NCCL {} and rank {} has NCCL {}, which do not understand each other; install one",
            all.front().on.empty() ? -1 : all.front().on.begin()->first, nccl_version_text(expected), rank,
            nccl_version_text(each.nccl_version)));
    }
}

void check_gpus(const std::map<int, GpuPlace>& places) {
    std::map<std::string, int> taken;
    for (const auto& [rank, place] : places) {
        const auto [other, first] = taken.emplace(place.machine + " " + place.bus, rank);
        if (first) continue;
        throw CudaError(
            fmt::format("run.comm = \"nccl\": ranks {} and {} share GPU {} of host {}, which NCCL refuses; "
                        "start no more processes on a host than it has GPUs, or use run.comm = \"local\" in "
                        "one process, whose ranks may share one",
                        other->second, rank, place.ordinal, place.host));
    }
}

}  // namespace

GpuPlace place_of(const Gpu& gpu) {
    return {machine(), gpu.bus, host_name(), gpu.ordinal};
}

std::string write(const Introduction& introduction) {
    std::string text = fmt::format("nccl {}\n", introduction.nccl_version);
    if (!introduction.missing.empty()) text += fmt::format("missing {}\n", introduction.missing);
    for (const auto& [rank, place] : introduction.on) {
        text +=
            fmt::format("rank {} {} {} {} {}\n", rank, place.machine, place.bus, place.ordinal, place.host);
    }
    for (const auto& [communicator, id] : introduction.ids) {
        text += fmt::format("id {} {}\n", communicator, hexadecimal(id));
    }
    return text;
}

Introduction read(std::string_view text) {
    Introduction introduction;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        if (read_line(line, introduction)) continue;
        throw CudaError(
            fmt::format("a process of the job says \"{}\", which this one does not understand; start all of "
                        "them from one build",
                        line));
    }
    return introduction;
}

std::vector<NcclId> call_roll(device::Bootstrap& bootstrap, const Introduction& mine, int ranks,
                              std::size_t communicators) {
    std::vector<Introduction> all;
    for (const std::string& text : bootstrap.gather(write(mine))) all.push_back(read(text));
    const std::map<int, GpuPlace> places = everywhere(all, ranks);
    check_libraries(all);
    check_gpus(places);
    std::vector<NcclId> ids(communicators);
    for (const Introduction& each : all) {
        for (const auto& [communicator, id] : each.ids) ids.at(static_cast<std::size_t>(communicator)) = id;
    }
    return ids;
}

}  // namespace shardscope::trainer::cuda
