#include "traces/import/input/input.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include "traces/store/file_descriptor.h"

namespace shardscope::traces::importer {

namespace {

constexpr std::size_t kPackedChunk = std::size_t{256} << 10;

// zlib's inflate, over one gzip member after another (RFC 1952: a file is a series of members).
class Unpacker {
  public:
    Unpacker() {
        if (::inflateInit2(&stream_, 15 + 16) != Z_OK)
            throw store::StoreError("zlib cannot start; free some memory");
    }
    ~Unpacker() { ::inflateEnd(&stream_); }
    Unpacker(const Unpacker&) = delete;
    Unpacker& operator=(const Unpacker&) = delete;
    z_stream& stream() { return stream_; }

  private:
    z_stream stream_ = {};
};

}  // namespace

struct Input::Impl {
    std::string path;
    InputOptions options;
    store::FileDescriptor file;  // none: reads `memory`
    std::string_view memory;
    std::uint64_t raw_size = 0, raw_taken = 0;  // of the file on disk

    std::unique_ptr<Unpacker> unpacker;  // null: plain
    std::vector<char> packed;            // what inflate reads from
    bool in_member = false, unpacked_all = false;

    std::string ahead;  // peeked at, not yet read
    std::size_t ahead_used = 0;
    std::uint64_t handed_out = 0, unpacked = 0;
    bool cut_is_end = false, was_cut = false;

    std::size_t raw_read(char* into, std::size_t size) {
        if (!file) {
            const std::size_t n = std::min(size, memory.size());
            std::copy_n(memory.data(), n, into);
            memory.remove_prefix(n);
            raw_taken += n;
            return n;
        }
        for (;;) {
            const ssize_t n = ::read(file.get(), into, size);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) {
                throw store::StoreError(fmt::format("{} cannot be read at byte {} ({}); copy it again", path,
                                                    raw_taken, std::strerror(errno)));
            }
            raw_taken += static_cast<std::uint64_t>(n);
            return static_cast<std::size_t>(n);
        }
    }

    std::size_t plain_read(char* into, std::size_t size) {
        std::size_t got = 0;
        while (got < size) {
            const std::size_t n = raw_read(into + got, size - got);
            if (n == 0) break;
            got += n;
        }
        return got;
    }

    std::size_t cut_here(std::size_t got, const std::string& what) {
        if (!cut_is_end) {
            throw store::StoreError(
                fmt::format("{} is {} at byte {} of its unpacked content; copy it again, or use --partial to "
                            "keep the intact part",
                            path, what, unpacked));
        }
        was_cut = unpacked_all = true;
        return got;
    }

    std::size_t unpack(char* into, std::size_t size) {
        z_stream& z = unpacker->stream();
        std::size_t got = 0;
        while (got < size && !unpacked_all) {
            if (z.avail_in == 0) {
                packed.resize(kPackedChunk);
                const std::size_t n = raw_read(packed.data(), packed.size());
                if (n == 0) {
                    if (in_member) return cut_here(got, "compressed with gzip and ends early,");
                    unpacked_all = true;
                    break;
                }
                z.next_in = reinterpret_cast<Bytef*>(packed.data());
                z.avail_in = static_cast<uInt>(n);
            }
            if (!in_member) {
                if (unpacked > 0 || got > 0) {  // after a member comes another one, or padding
                    if (*z.next_in != 0x1F) {
                        unpacked_all = true;
                        break;
                    }
                    ::inflateReset(&z);
                }
                in_member = true;
            }
            const std::size_t room = std::min<std::size_t>(size - got, std::size_t{1} << 30);
            z.next_out = reinterpret_cast<Bytef*>(into + got);
            z.avail_out = static_cast<uInt>(room);
            const int code = ::inflate(&z, Z_NO_FLUSH);
            const std::size_t n = room - z.avail_out;
            got += n;
            unpacked += n;
            if (unpacked > options.max_bytes) {
                throw store::StoreError(fmt::format(
                    "{} unpacks to more than {} bytes; use --max-size with a larger number if you trust it",
                    path, options.max_bytes));
            }
            if (code == Z_STREAM_END) {
                in_member = false;
            } else if (code != Z_OK && code != Z_BUF_ERROR) {
                return cut_here(got, fmt::format("damaged ({})", z.msg != nullptr ? z.msg : "no gzip"));
            }
        }
        return got;
    }

    std::size_t produce(char* into, std::size_t size) {
        const merge::WorkOptions& work = options.work;
        if (work.cancel != nullptr && *work.cancel)
            throw merge::Cancelled("it was stopped; nothing was written");
        const std::size_t n = unpacker ? unpack(into, size) : plain_read(into, size);
        if (work.progress && raw_size > 0) {
            const double part = static_cast<double>(raw_taken) / static_cast<double>(raw_size);
            work.progress(std::min(part, 1.0));
        }
        return n;
    }

    void start() {
        std::array<char, 2> magic{};
        ahead.resize(magic.size());
        ahead.resize(plain_read(ahead.data(), magic.size()));
        if (ahead != "\x1F\x8B") return;
        unpacker = std::make_unique<Unpacker>();
        packed.assign(ahead.begin(), ahead.end());
        ahead.clear();
        unpacker->stream().next_in = reinterpret_cast<Bytef*>(packed.data());
        unpacker->stream().avail_in = static_cast<uInt>(packed.size());
    }
};

Input::Input(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Input::Input(Input&&) noexcept = default;
Input& Input::operator=(Input&&) noexcept = default;
Input::~Input() = default;

Input Input::open(const std::string& path, const InputOptions& options) {
    auto impl = std::make_unique<Impl>();
    impl->path = path;
    impl->options = options;
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (status.type() == std::filesystem::file_type::not_found)
        throw store::StoreError(fmt::format("{} does not exist; check the path", path));
    if (std::filesystem::is_directory(status))
        throw store::StoreError(fmt::format("{} is a folder; give the trace file in it", path));
    impl->file = store::FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!impl->file) {
        throw store::StoreError(
            fmt::format("{} cannot be read ({}); check its permissions", path, std::strerror(errno)));
    }
    if (std::filesystem::is_regular_file(status)) {
        const auto size = std::filesystem::file_size(path, error);
        impl->raw_size = error ? 0 : size;
        ::posix_fadvise(impl->file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    impl->start();
    return Input(std::move(impl));
}

Input Input::of_memory(std::string name, std::string_view bytes, const InputOptions& options) {
    auto impl = std::make_unique<Impl>();
    impl->path = std::move(name);
    impl->options = options;
    impl->memory = bytes;
    impl->raw_size = bytes.size();
    impl->start();
    return Input(std::move(impl));
}

std::size_t Input::read(std::span<char> into) {
    Impl& i = *impl_;
    const std::size_t from_ahead = std::min(into.size(), i.ahead.size() - i.ahead_used);
    std::copy_n(i.ahead.data() + i.ahead_used, from_ahead, into.data());
    i.ahead_used += from_ahead;
    if (i.ahead_used == i.ahead.size()) {
        i.ahead.clear();
        i.ahead_used = 0;
    }
    std::size_t got = from_ahead;
    if (got < into.size()) got += i.produce(into.data() + got, into.size() - got);
    i.handed_out += got;
    return got;
}

const std::string& Input::path() const {
    return impl_->path;
}
std::uint64_t Input::offset() const {
    return impl_->handed_out;
}
bool Input::packed() const {
    return impl_->unpacker != nullptr;
}
void Input::set_cut_is_end(bool value) {
    impl_->cut_is_end = value;
}
bool Input::cut() const {
    return impl_->was_cut;
}

std::string_view Input::peek(std::size_t size) {
    Impl& i = *impl_;
    const std::size_t there = i.ahead.size() - i.ahead_used;
    if (there < size) {
        std::string more = i.ahead.substr(i.ahead_used);
        more.resize(size);
        more.resize(there + i.produce(more.data() + there, size - there));
        i.ahead = std::move(more);
        i.ahead_used = 0;
    }
    return std::string_view(i.ahead).substr(i.ahead_used, size);
}

store::StoreError Input::error(std::uint64_t at, std::string_view sentence) const {
    return store::StoreError(fmt::format("{} at byte {}: {}", impl_->path, at, sentence));
}

}  // namespace shardscope::traces::importer
