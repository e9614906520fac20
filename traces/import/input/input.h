// The bytes of a file that somebody else wrote, plain or packed with gzip, read from front to back.
//
// Owns the open file. One thread. Offsets and sizes are of the unpacked bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "traces/merge/work.h"
#include "traces/store/error.h"

namespace shardscope::traces {

struct InputOptions {
    std::uint64_t max_bytes = std::uint64_t{256} << 30;  // most that a packed file may unpack to
    WorkOptions work;                                    // cancel and progress: looked at while reading
};

class Input {
  public:
    // Throws StoreError where the file cannot be read.
    static Input open(const std::string& path, const InputOptions& options = {});
    // Bytes that lie in memory, packed or not; they must outlive the Input. `name` stands in messages.
    static Input of_memory(std::string name, std::string_view bytes, const InputOptions& options = {});
    Input(Input&&) noexcept;
    Input& operator=(Input&&) noexcept;
    ~Input();

    // Fills as much of `into` as there is; less (at last 0) only at the end. Throws StoreError: unreadable,
    // damaged or cut packing (unless `cut_is_end` was set), larger than max_bytes; Cancelled on demand.
    std::size_t read(std::span<char> into);
    // Everything that is left. Meant for formats that need all of it at once.
    std::string read_rest();

    const std::string& path() const;
    std::uint64_t offset() const;  // bytes handed out so far
    bool packed() const;
    // Take a packing that is cut or damaged for the end of the file (--partial); cut() then tells of it.
    void set_cut_is_end(bool value);
    bool cut() const;

    // The first bytes, at most `size`, without moving on.
    std::string_view peek(std::size_t size);

    // "FILE at byte N: what was found and expected; what to do" as an exception to throw.
    StoreError error(std::uint64_t at, std::string_view sentence) const;

  private:
    struct Impl;
    explicit Input(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces
