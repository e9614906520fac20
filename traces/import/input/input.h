// The bytes of a foreign file, plain or packed with gzip, read from front to back.
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

namespace shardscope::traces::importer {

struct InputOptions {
    std::uint64_t max_bytes = std::uint64_t{256} << 30;  // limit of the unpacked size of a packed file
    merge::WorkOptions work;                             // cancel and progress, used while reading
};

class Input {
  public:
    // Throws StoreError if the file cannot be read.
    static Input open(const std::string& path, const InputOptions& options = {});
    // Reads bytes in memory, packed or not; they must outlive the Input. `name`: for messages.
    static Input of_memory(std::string name, std::string_view bytes, const InputOptions& options = {});
    Input(Input&&) noexcept;
    Input& operator=(Input&&) noexcept;
    ~Input();

    // Fills `into` and returns the number of bytes, which is less than its size (finally 0) only at the end.
    // Throws StoreError if the file is unreadable, its gzip data is damaged or cut (unless `cut_is_end` was
    // set), or its size is above max_bytes; Cancelled on request.
    std::size_t read(std::span<char> into);

    const std::string& path() const;
    std::uint64_t offset() const;  // bytes handed out so far
    bool packed() const;
    // Treats cut or damaged gzip data as the end of the file (--partial); cut() then reports it.
    void set_cut_is_end(bool value);
    bool cut() const;

    // The next bytes, at most `size`, without consuming them.
    std::string_view peek(std::size_t size);

    // "FILE at byte N: what was found and expected; what to do" as an exception to throw.
    store::StoreError error(std::uint64_t at, std::string_view sentence) const;

  private:
    struct Impl;
    explicit Input(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace shardscope::traces::importer
