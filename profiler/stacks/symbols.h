// The functions of a program or library, from its ELF symbol tables, and of code that a program compiled
// itself, from the map that it writes for perf (/tmp/perf-PID.map, as Python does with -X perf). One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::profiler {

class Symbols {
  public:
    // A file that cannot be read has no functions.
    static Symbols of_elf(const std::string& path);
    // Adds those of a map from byte `from` on, and returns the byte after its last whole line that was read.
    // A map that has become shorter is another one, and is read from its beginning.
    std::uintmax_t add_perf_map(const std::string& path, std::uintmax_t from);

    // The demangled name of the function at an offset of the file (of a map: at an address); empty: unknown.
    std::string at(std::uint64_t offset) const;
    bool empty() const { return functions_.empty(); }

  private:
    struct Function {
        std::uint64_t start = 0, size = 0;  // in the file; size 0: up to the next
        std::string name;
    };
    void put_in_order(std::size_t sorted);  // the first of them are in order already

    std::vector<Function> functions_;
};

}  // namespace shardscope::profiler
