// See trace_identity.h.
#include "traces/store/trace_identity.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces::store {
namespace {

constexpr std::size_t kDatabaseHeader = 100;  // of every SQLite file
constexpr std::string_view kDatabaseMagic("SQLite format 3\0", 16);
constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
constexpr std::int64_t kSettledNs = 1'000'000'000;

bool is_filled(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 && facts.st_size > 0;
}

std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) {
    return std::rotl((lane ^ word) * kFactor, 31);
}

}  // namespace

std::optional<TraceIdentity> identity_of(const std::string& path) {
    if (is_filled(path + "-wal") || is_filled(path + "-journal")) return std::nullopt;
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat facts {};
    if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
    std::array<char, kDatabaseHeader> header{};
    if (::pread(file.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()) ||
        std::string_view(header.data(), kDatabaseMagic.size()) != kDatabaseMagic)
        return std::nullopt;
    ByteSum sum;
    sum.add(header.data(), header.size());
    return TraceIdentity{
        .bytes = facts.st_size,
        .changed_ns = static_cast<std::int64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 + facts.st_mtim.tv_nsec,
        .header = sum.value()};
}

bool is_settled(const TraceIdentity& identity) {
    const std::int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count();
    return now - identity.changed_ns > kSettledNs;
}

void ByteSum::add(const void* bytes, std::size_t size) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    size_ += size;
    std::uint64_t words[4];
    for (; size >= sizeof words; at += sizeof words, size -= sizeof words) {
        std::memcpy(words, at, sizeof words);
        for (int l = 0; l < 4; ++l) lanes_[l] = mixed(lanes_[l], words[l]);
    }
    if (size == 0) return;
    std::memset(words, 0, sizeof words);
    std::memcpy(words, at, size);
    for (int l = 0; l < 4; ++l) lanes_[l] = mixed(lanes_[l], words[l]);
}

std::uint64_t ByteSum::value() const {
    std::uint64_t sum = size_;
    for (const std::uint64_t lane : lanes_) sum = mixed(sum, lane);
    return sum ^ sum >> 32;
}

}  // namespace shardscope::traces::store
