// See row_simulation.h.
#include "viewer/model/row_simulation.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "viewer/draw/format.h"

namespace shardscope::viewer {
namespace {

namespace fs = std::filesystem;
constexpr const char* kTool = "shardscope-train";

// Accessible to its owner only, like traces.
std::string make_folder() {
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    std::string folder = ((error ? fs::path("/tmp") : base) / "shardscope-view-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) {
        throw std::runtime_error(fmt::format(
            "{}: no folder for the simulated trace can be made here ({}); set TMPDIR to one where it can.",
            folder, std::strerror(errno)));
    }
    return folder;
}

}  // namespace

RowSimulation::~RowSimulation() {
    child_.reset();
    if (folder_.empty()) return;
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
}

void RowSimulation::start(const std::string& job, const std::string& name) {
    if (busy()) return;
    name_ = name;
    error_.clear();
    cancelled_ = false;
    try {
        begin(job);
    } catch (const std::exception& failure) {
        error_ = failure.what();
    }
}

void RowSimulation::begin(const std::string& job) {
    if (job.empty()) throw std::runtime_error("This row has no job: such a configuration cannot be.");
    const std::string tool = tool_.empty() ? find_tool(kTool) : tool_;
    if (tool.empty()) {
        throw std::runtime_error(fmt::format(
            "{} is neither beside this program nor on PATH; install it, or save the job file and simulate "
            "it where it is: {} JOB.toml --run.device=sim --trace OUT.sqlite.",
            kTool, kTool));
    }
    if (folder_.empty()) folder_ = make_folder();
    const std::string stem = (fs::path(folder_) / fmt::format("row-{}", ++count_)).string();
    const std::string file = stem + ".toml";
    std::ofstream out(file, std::ios::binary);
    out << job;
    out.close();
    if (!out)
        throw std::runtime_error(fmt::format("{}: cannot be written ({}).", file, std::strerror(errno)));
    trace_ = stem + ".sqlite";
    child_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{tool, file, "--run.device=sim", "--trace", trace_, "--format", "json"});
    began_ = std::chrono::steady_clock::now();
}

void RowSimulation::cancel() {
    if (!busy()) return;
    cancelled_ = true;
    child_->stop();
}

std::string RowSimulation::failure() const {
    if (cancelled_) return fmt::format("The simulation of {} was cancelled.", name_);
    std::string said = child_->last_line();
    const std::string prefix = fmt::format("{}: ", kTool);
    if (said.starts_with(prefix)) said.erase(0, prefix.size());
    if (child_->status() < 0)
        return fmt::format("{} was ended by signal {} while it simulated {}.", kTool, -child_->status(),
                           name_);
    return fmt::format(
        "{} cannot be simulated: {}", name_,
        said.empty() ? fmt::format("{} ended with status {}.", kTool, child_->status()) : said);
}

std::optional<RowSimulation::Made> RowSimulation::poll() {
    if (!busy() || !child_->poll()) return std::nullopt;
    const bool done = child_->status() == 0 && !cancelled_;
    if (!done) {
        error_ = failure();
        remove(trace_);
    }
    child_.reset();
    if (!done) return std::nullopt;
    return Made{trace_, name_};
}

std::string RowSimulation::progress() const {
    if (!busy()) return "";
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    std::error_code error;
    const auto bytes = fs::file_size(trace_, error);
    return fmt::format(
        "{} {}: {:.0f} s{}", cancelled_ ? "stopping" : "simulating", name_, seconds,
        error ? "" : fmt::format(", {} written", format_size(static_cast<std::int64_t>(bytes))));
}

bool RowSimulation::is_mine(const std::string& path) const {
    return !folder_.empty() && path.starts_with(folder_ + "/");
}

void RowSimulation::remove(const std::string& path) const {
    if (!is_mine(path)) return;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
        std::error_code ignored;
        fs::remove(path + suffix, ignored);
    }
}

}  // namespace shardscope::viewer
