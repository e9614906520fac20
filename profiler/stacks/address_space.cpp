#include "profiler/stacks/address_space.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace shardscope::profiler {
namespace {

constexpr std::size_t kMostFrames = 1 << 18;  // remembered for each file

// "/usr/lib/libc.so.6" -> "libc.so.6"; "[vdso]" stays.
std::string base_name(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == path.npos ? path : path.substr(slash + 1);
}

constexpr const char* kMade = "compiled at run time";

std::string frame_text(const std::string& function, const std::string& file) {
    return fmt::format("{} ({})", function.empty() ? "[unknown]" : function, file);
}

// Memory without a file, where programs compile code to: "//anon", "/memfd:...", "/dev/zero", "[anon:...]".
bool is_anonymous(const std::string& path) {
    return path.empty() || path.starts_with("//") || path.starts_with("/memfd:") ||
           path.starts_with("/dev/") || path.starts_with("[heap]") || path.starts_with("[anon");
}

}  // namespace

AddressSpaces::Space& AddressSpaces::space(std::int32_t pid) {
    if (spaces_.size() >= kMost && !spaces_.contains(pid)) {
        const auto oldest =
            std::min_element(spaces_.begin(), spaces_.end(),
                             [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
        spaces_.erase(oldest);
    }
    Space& space = spaces_[pid];
    space.used = ++uses_;
    return space;
}

AddressSpaces::File* AddressSpaces::file(const std::string& path, std::int32_t pid) {
    if (is_anonymous(path)) return nullptr;
    const auto [known, is_new] = files_.try_emplace(path);
    if (is_new) {
        known->second.name = base_name(path);
        if (path.starts_with('/')) {
            // A container has files of its own; of a process that has ended there is only the path.
            known->second.symbols = Symbols::of_elf(fmt::format("/proc/{}/root{}", pid, path));
            if (known->second.symbols.empty()) known->second.symbols = Symbols::of_elf(path);
        }
    }
    return &known->second;
}

void AddressSpaces::add(const CodeMapping& mapping) {
    std::map<std::uint64_t, Mapping>& mappings = space(mapping.pid).mappings;
    const std::uint64_t end = mapping.start + mapping.size;
    if (mapping.size == 0 || end < mapping.start) return;
    // The new mapping replaces what was there, which may go on after it.
    auto at = mappings.upper_bound(mapping.start);
    if (at != mappings.begin() && std::prev(at)->second.end > mapping.start) --at;
    while (at != mappings.end() && at->first < end) {
        const std::uint64_t start = at->first;
        const Mapping old = at->second;
        at = mappings.erase(at);
        if (start < mapping.start) mappings[start] = {mapping.start, old.offset, old.file};
        if (old.end > end) mappings[end] = {old.end, old.offset + (end - start), old.file};
    }
    mappings[mapping.start] = {end, mapping.offset, file(mapping.file, mapping.pid)};
}

void AddressSpaces::fork(std::int32_t pid, std::int32_t parent) {
    const auto from = spaces_.find(parent);
    if (from == spaces_.end()) return;
    std::map<std::uint64_t, Mapping> mappings = from->second.mappings;
    space(pid) = {};
    space(pid).mappings = std::move(mappings);
}

void AddressSpaces::clear(std::int32_t pid) {
    space(pid) = {};
}

bool AddressSpaces::has_code_at(std::int32_t pid, std::uint64_t address) const {
    const auto in = spaces_.find(pid);
    if (in == spaces_.end()) return false;
    const auto after = in->second.mappings.upper_bound(address);
    return after != in->second.mappings.begin() && address < std::prev(after)->second.end;
}

const std::string& AddressSpaces::frame(std::int32_t pid, std::uint64_t address) {
    static const std::string kUnknown = "[unknown]";
    Space& in = space(pid);
    const auto after = in.mappings.upper_bound(address);
    if (after == in.mappings.begin()) return kUnknown;
    const auto& [start, mapping] = *std::prev(after);
    if (address >= mapping.end) return kUnknown;
    if (mapping.file == nullptr) return made_frame(pid, in, address);
    File& file = *mapping.file;
    const std::uint64_t offset = address - start + mapping.offset;
    if (file.frames.size() > kMostFrames) file.frames.clear();
    const auto [known, is_new] = file.frames.try_emplace(offset);
    if (is_new) known->second = frame_text(file.symbols.at(offset), file.name);
    return known->second;
}

// The map grows while the program compiles: when it does not name an address, what was added to it since is
// read, and addresses without a name are looked for again.
const std::string& AddressSpaces::made_frame(std::int32_t pid, Space& space, std::uint64_t address) {
    static const std::string kUnnamed = frame_text("", kMade);
    if (const auto known = space.made_frames.find(address); known != space.made_frames.end())
        return known->second;
    std::string function = space.made.at(address);
    if (function.empty()) {
        const std::uintmax_t read =
            space.made.add_perf_map(fmt::format("/tmp/perf-{}.map", pid), space.made_bytes);
        if (read < space.made_bytes) space.made_frames.clear();  // another map has replaced it
        space.made_bytes = read;
        function = space.made.at(address);
    }
    if (function.empty()) return kUnnamed;
    if (space.made_frames.size() > kMostFrames) space.made_frames.clear();
    return space.made_frames.emplace(address, frame_text(function, kMade)).first->second;
}

}  // namespace shardscope::profiler
