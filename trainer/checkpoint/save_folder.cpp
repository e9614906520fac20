#include "trainer/checkpoint/save_folder.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "trainer/checkpoint/error.h"
#include "trainer/world/own_launcher.h"
#include "trainer/world/world.h"

namespace shardscope::trainer::checkpoint {

namespace fs = std::filesystem;

namespace {

// How long a run that has been asked to end may take, and how often this is polled.
constexpr std::chrono::milliseconds kEnding(3000), kLook(20);
constexpr const char* kShared =
    "checkpoint.save must be on a file system that all hosts share, at the same path for all of them";

bool same_folder(const fs::path& a, const fs::path& b) {
    std::error_code error;
    return fs::equivalent(a, b, error) && !error;
}

// A file in the folder that exists as long as this object.
class Trial {
  public:
    explicit Trial(fs::path path) : path_(std::move(path)) { write_file(path_, ""); }
    ~Trial() {
        std::error_code ignored;
        fs::remove(path_, ignored);
    }
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;

  private:
    fs::path path_;
};

// Locks the folder: two runs in one folder would remove what the other is writing.
File take(const fs::path& folder) {
    File file = File::open_to_write(folder / kLockName);
    const auto since = std::chrono::steady_clock::now();
    while (!file.lock()) {
        if (std::chrono::steady_clock::now() - since > kEnding) {
            throw CheckpointError(
                fmt::format("{}: another run is saving checkpoints there; wait until it ends, or "
                            "choose another folder",
                            folder.string()));
        }
        std::this_thread::sleep_for(kLook);
    }
    return file;
}

// Does `work` on rank 0; if it throws, all ranks throw the same error.
void first_decides(world::World& world, const std::function<void()>& work) {
    std::string error;
    if (world.rank() == 0) {
        try {
            work();
        } catch (const CheckpointError& refused) {
            error = refused.what();
        }
    }
    error = world.broadcast(error);
    if (!error.empty()) throw CheckpointError(error);
}

fs::path trial_of(const SaveFolder& folder, const std::string& token, int rank) {
    return folder.path / trial_file_name(fmt::format("{}-{:05}", token, rank));
}

// `errors`: what kept each process from writing.
void check_trials(const SaveFolder& folder, const world::World& world, const std::string& token,
                  const std::vector<std::string>& errors) {
    for (int rank = 0; rank < world.ranks(); ++rank) {
        const std::string& error = errors[static_cast<std::size_t>(rank)];
        if (!error.empty()) {
            throw CheckpointError(fmt::format("{}: {} cannot write checkpoints there: {}; {}",
                                              folder.path.string(), process_name(world, rank), error,
                                              kShared));
        }
        std::error_code missing;
        if (!fs::exists(trial_of(folder, token, rank), missing)) {
            throw CheckpointError(fmt::format("{}: what {} writes there is not seen by {}; {}",
                                              folder.path.string(), process_name(world, rank),
                                              process_name(world, 0), kShared));
        }
    }
}

}  // namespace

std::string process_name(const world::World& world, int rank) {
    return fmt::format("rank {} on {}", rank, world.members()[static_cast<std::size_t>(rank)].host);
}

File make_ready(const SaveFolder& folder) {
    const fs::path &path = folder.path, &from = folder.goes_on_from;
    const bool goes_on = !from.empty() && (same_folder(from, path) || same_folder(from.parent_path(), path));
    if (!folder.overwrite && !goes_on && holds_checkpoints(path)) {
        throw CheckpointError(
            fmt::format("{}: contains checkpoints of another run; choose another folder, continue from them "
                        "(checkpoint.load), or"
                        " give --overwrite",
                        path.string()));
    }
    try {
        fs::create_directories(path);
        File lock = take(path);
        remove_unfinished(path);
        const Trial trial(path / trial_file_name(world::random_token()));
        return lock;
    } catch (const std::system_error& error) {
        throw CheckpointError(
            fmt::format("{}: checkpoints cannot be written there: {}; choose another folder", path.string(),
                        error.code().message()));
    }
}

std::optional<File> make_ready(const SaveFolder& folder, world::World& world) {
    std::optional<File> lock;
    first_decides(world, [&] { lock.emplace(make_ready(folder)); });
    // The names are new, so that no host has cached that they do not exist.
    const std::string token = world.broadcast(world::random_token());
    std::optional<Trial> trial;  // kept until rank 0 has looked for it
    std::string error;
    try {
        trial.emplace(trial_of(folder, token, world.rank()));
    } catch (const std::system_error& failed) {
        error = failed.code().message();
    }
    const std::vector<std::string> errors = world.gather(error);
    first_decides(world, [&] { check_trials(folder, world, token, errors); });
    return lock;
}

}  // namespace shardscope::trainer::checkpoint
