// Which function an address of a process is in: the process's mappings of code, as the source of samples
// reports them, and the functions of the mapped files, which all processes share. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/stacks/sample_source.h"
#include "profiler/stacks/symbols.h"

namespace shardscope::profiler {

class AddressSpaces {
  public:
    static constexpr std::size_t kMost =
        2048;  // processes; beyond, the one that was used least recently goes

    void add(const CodeMapping& mapping);
    void fork(std::int32_t pid, std::int32_t parent);
    void clear(std::int32_t pid);  // it executes another program
    bool has_code_at(std::int32_t pid, std::uint64_t address) const;

    // "function (library)", "[unknown] (library)"; "[unknown]" outside all mappings. Valid until the next
    // call that changes anything.
    const std::string& frame(std::int32_t pid, std::uint64_t address);

  private:
    struct File {
        std::string name;  // without folders
        Symbols symbols;
        std::unordered_map<std::uint64_t, std::string> frames;  // by offset in the file
    };
    struct Mapping {
        std::uint64_t end = 0, offset = 0;
        File* file = nullptr;  // nullptr: memory without a file
    };
    struct Space {
        std::map<std::uint64_t, Mapping> mappings;  // by start
        Symbols made;                               // of code that the process compiled itself
        std::uintmax_t made_bytes = 0;              // of their file that have been read
        std::unordered_map<std::uint64_t, std::string> made_frames;  // by address
        std::uint64_t used = 0;
    };

    Space& space(std::int32_t pid);
    File* file(const std::string& path, std::int32_t pid);
    const std::string& made_frame(std::int32_t pid, Space& space, std::uint64_t address);

    std::unordered_map<std::int32_t, Space> spaces_;
    std::map<std::string, File> files_;
    std::uint64_t uses_ = 0;
};

}  // namespace shardscope::profiler
