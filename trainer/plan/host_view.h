// A piece of a rank's memory as host threads see it: in place if they can reach it, else a copy that commit()
// writes back.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace shardscope::trainer::plan {

class HostView {
  public:
    HostView() = default;  // an empty view
    explicit HostView(std::span<std::byte> in_place) : bytes_(in_place) {}
    HostView(std::vector<std::byte> copy, std::function<void(std::span<const std::byte>)> write_back)
        : copy_(std::move(copy)), bytes_(copy_), write_back_(std::move(write_back)) {}
    HostView(HostView&&) noexcept = default;  // a moved vector keeps its elements where they are
    HostView& operator=(HostView&&) noexcept = default;
    HostView(const HostView&) = delete;
    HostView& operator=(const HostView&) = delete;

    std::span<std::byte> bytes() const { return bytes_; }
    // Returns when everything written into bytes() is in the rank's memory.
    void commit() {
        if (write_back_) write_back_(bytes_);
    }

  private:
    std::vector<std::byte> copy_;
    std::span<std::byte> bytes_;
    std::function<void(std::span<const std::byte>)> write_back_;
};

}  // namespace shardscope::trainer::plan
