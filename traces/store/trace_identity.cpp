// See trace_identity.h.
#include "traces/store/trace_identity.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces::store {
namespace {

constexpr std::size_t kDatabaseHeader = 100;  // of every SQLite file
constexpr std::size_t kSample = 1 << 14;      // bytes read at each of three places
constexpr std::string_view kDatabaseMagic("SQLite format 3\0", 16);
constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
constexpr std::int64_t kSettledNs = 1'000'000'000;

bool is_filled(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0 && facts.st_size > 0;
}

std::int64_t changed_ns(const struct stat& facts) {
    return static_cast<std::int64_t>(facts.st_mtim.tv_sec) * 1'000'000'000 + facts.st_mtim.tv_nsec;
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
    // Its beginning, middle and end: runs of one shape have equal headers.
    std::vector<char> bytes(3 * kSample);
    std::size_t size = 0;
    for (const off_t at : {off_t{0}, facts.st_size / 2, facts.st_size - static_cast<off_t>(kSample)}) {
        const ssize_t got = ::pread(file.get(), bytes.data() + size, kSample, std::max<off_t>(at, 0));
        if (got <= 0) return std::nullopt;
        size += static_cast<std::size_t>(got);
    }
    if (size < kDatabaseHeader || std::string_view(bytes.data(), kDatabaseMagic.size()) != kDatabaseMagic)
        return std::nullopt;
    ByteSum sum;
    sum.add(bytes.data(), size);
    return TraceIdentity{.bytes = facts.st_size, .changed_ns = changed_ns(facts), .sample = sum.value()};
}

bool is_unchanged(const std::string& path, const TraceIdentity& identity) {
    struct stat facts {};
    return !is_filled(path + "-wal") && !is_filled(path + "-journal") && ::stat(path.c_str(), &facts) == 0 &&
           facts.st_size == identity.bytes && changed_ns(facts) == identity.changed_ns;
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
