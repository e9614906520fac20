// A folder in which a test plays /proc and /sys.
#pragma once

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "profiler/sampler/samples.h"
#include "profiler/sampler/system_files.h"
#include "tests/traces/temporary_folder.h"

namespace shardscope::profiler {

class PlayedFiles {
  public:
    std::string root() const { return folder_.path(); }
    const SystemFiles& files() const { return files_; }

    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file(root() + path);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    void link(const std::string& path, const std::string& target) const {
        const std::filesystem::path file(root() + path);
        std::filesystem::create_directories(file.parent_path());
        std::filesystem::create_symlink(target, file);
    }
    void remove(const std::string& path) const { std::filesystem::remove_all(root() + path); }

  private:
    const traces::TemporaryFolder folder_;
    const SystemFiles files_{folder_.path()};
};

// The value of the last sample with that name (of that device); NaN: there is none.
inline double value_of(const Samples& samples, const std::string& name, int device = -1) {
    double value = std::numeric_limits<double>::quiet_NaN();
    for (const Sample& sample : samples.counters) {
        if (sample.name == name && sample.device == device) value = sample.value;
    }
    return value;
}

// What a rate's last sample says was counted since the sample before; NaN: there are not two.
inline double counted(const Samples& samples, const std::string& name, int device = -1) {
    double counted = std::numeric_limits<double>::quiet_NaN();
    const Sample* before = nullptr;
    for (const Sample& sample : samples.counters) {
        if (sample.name != name || sample.device != device) continue;
        if (before != nullptr)
            counted = sample.value * static_cast<double>(sample.time - before->time) * 1e-9;
        before = &sample;
    }
    return counted;
}

}  // namespace shardscope::profiler
