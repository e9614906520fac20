// See column_file.h. A header, the columns one after the other, and a table of them.
#include "traces/store/beside/column_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shardscope/version.h"
#include "traces/schema/schema.h"
#include "traces/store/error.h"
#include "traces/store/on_cores.h"
#include "traces/store/sqlite/temporary_file.h"

namespace shardscope::traces::store {

namespace {

// Changes whenever the columns of the same rows do: their layout, or what is computed from the rows.
constexpr std::uint32_t kColumnsVersion = 1;
constexpr std::uint32_t kColumnsEndian = 0x01020304;
constexpr std::array<char, 16> kColumnsMagic = {'s', 'h', 'a', 'r', 'd', 's', 'c', 'o',
                                                'p', 'e', ' ', 'c', 'o', 'l', 's', 0};
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kBytesAtATime = std::size_t{1} << 18;  // bytes read at a time
constexpr std::size_t kColumnsAtMost = std::size_t{1} << 20;

std::uint64_t byte_sum(const void* bytes, std::size_t size) {
    ByteSum sum;
    sum.add(bytes, size);
    return sum.value();
}

// Of the program's version and the schema's.
std::uint64_t program_sum() {
    const std::string both = fmt::format("{} {}", kVersion, schema::kSchemaVersion);
    return byte_sum(both.data(), both.size());
}

struct ColumnsHeader {
    std::array<char, 16> magic = kColumnsMagic;
    std::uint32_t endian = kColumnsEndian, version = kColumnsVersion;
    std::uint64_t program = program_sum();
    TraceIdentity identity;
    std::uint64_t table_at = 0, table_entries = 0, table_sum = 0;
    std::uint64_t sum = 0;  // of all before it
};
static_assert(std::is_trivially_copyable_v<ColumnsHeader> && sizeof(ColumnsHeader) == 16 + 16 + 24 + 24 + 8);

struct ColumnEntry {
    std::array<char, 40> name{};
    std::uint64_t at = 0, bytes = 0, sum = 0;
};
static_assert(sizeof(ColumnEntry) == 64);

bool read_all_at(int file, void* into, std::size_t size, std::uint64_t at) {
    auto* to = static_cast<char*>(into);
    while (size > 0) {
        const ssize_t got = ::pread(file, to, size, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        at += static_cast<std::uint64_t>(got);
        size -= static_cast<std::size_t>(got);
    }
    return true;
}

}  // namespace

std::string column_path(const std::string& trace) {
    return trace + kColumnsSuffix;
}

std::shared_ptr<const ColumnFile> ColumnFile::open(const std::string& trace, const TraceIdentity& identity) {
    const std::shared_ptr<ColumnFile> file(new ColumnFile);
    return file->read(trace, identity) ? file : nullptr;
}

ColumnFile::~ColumnFile() {
    if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
}

bool ColumnFile::read(const std::string& trace, const TraceIdentity& identity) {
    file_ =
        FileDescriptor(::open(column_path(trace).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat facts {
    }, of_trace{};
    ColumnsHeader header;
    // A file is trusted only if it is of this user, or of whose the trace is.
    if (!file_ || ::fstat(file_.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
        ::stat(trace.c_str(), &of_trace) != 0 ||
        (facts.st_uid != of_trace.st_uid && facts.st_uid != ::geteuid()) ||
        !read_all_at(file_.get(), &header, sizeof header, 0) || header.magic != kColumnsMagic ||
        header.endian != kColumnsEndian || header.version != kColumnsVersion ||
        header.program != program_sum() || header.sum != byte_sum(&header, offsetof(ColumnsHeader, sum)) ||
        !(header.identity == identity))
        return false;
    bytes_ = static_cast<std::size_t>(facts.st_size);
    if (header.table_at > bytes_ || header.table_entries > kColumnsAtMost ||
        header.table_entries != (bytes_ - header.table_at) / sizeof(ColumnEntry) ||
        (bytes_ - header.table_at) % sizeof(ColumnEntry) != 0)
        return false;
    std::vector<ColumnEntry> table(header.table_entries);
    if (!read_all_at(file_.get(), table.data(), table.size() * sizeof(ColumnEntry), header.table_at) ||
        byte_sum(table.data(), table.size() * sizeof(ColumnEntry)) != header.table_sum)
        return false;
    for (const ColumnEntry& entry : table) {
        if (entry.at > header.table_at || entry.bytes > header.table_at - entry.at ||
            entry.at % kAlignment != 0)
            return false;
        const auto length = static_cast<std::size_t>(std::find(entry.name.begin(), entry.name.end(), '\0') -
                                                     entry.name.begin());
        parts_[std::string(entry.name.data(), length)] = {entry.at, entry.bytes, entry.sum};
    }
    void* mapped =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file_.get(), 0);
    if (mapped == MAP_FAILED) return false;
    mapped_ = static_cast<std::byte*>(mapped);
    return true;
}

bool ColumnTaker::is_as_written(const Waiting& column, std::span<std::byte> chunk) const {
    ByteSum sum;
    for (std::uint64_t done = 0; done < column.part.bytes;) {
        const auto size =
            static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), column.part.bytes - done));
        if (!read_all_at(file_.file_.get(), chunk.data(), size, column.part.at + done)) return false;
        sum.add(chunk.data(), size);
        if (!column.holds(chunk.first(size), done)) return false;
        done += size;
    }
    return sum.value() == column.part.sum;
}

bool ColumnTaker::checked() {
    const std::vector<Waiting> columns = std::exchange(waiting_, {});
    std::atomic<bool> good = !std::exchange(failed_, false);
    on_cores(cores(), columns.size(), [&](std::size_t i) {
        std::array<std::byte, kBytesAtATime> chunk;
        if (good && !is_as_written(columns[i], chunk)) good = false;
    });
    return good;
}

struct ColumnFileWriter::Impl {
    Impl(const std::string& trace, const TraceIdentity& of, const std::atomic<bool>* stop)
        : target(column_path(trace)), cancel(stop), temporary(unfinished_name(target, "columns")) {
        header.identity = of;
        // Whoever may read the trace may read its columns.
        struct stat facts {};
        if (::stat(trace.c_str(), &facts) == 0) (void)::fchmod(file.get(), facts.st_mode & 0666);
    }

    void write(const void* bytes, std::size_t size, std::uint64_t to) {
        const auto* from = static_cast<const char*>(bytes);
        while (size > 0) {
            if (cancel != nullptr && *cancel) throw StoreError(target + ": writing was cancelled");
            const ssize_t put =
                ::pwrite(file.get(), from, std::min(size, 16 * kBytesAtATime), static_cast<off_t>(to));
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0)
                throw StoreError(fmt::format("{} cannot be written: {}", target, std::strerror(errno)));
            from += put;
            to += static_cast<std::uint64_t>(put);
            size -= static_cast<std::size_t>(put);
        }
    }

    std::string target;
    const std::atomic<bool>* cancel;
    TemporaryFile temporary;
    FileDescriptor file{::open(temporary.path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW)};
    ColumnsHeader header;
    std::vector<ColumnEntry> table;
    std::uint64_t at = sizeof(ColumnsHeader);
};

ColumnFileWriter::ColumnFileWriter(const std::string& trace, const TraceIdentity& identity,
                                   const std::atomic<bool>* cancel) {
    remove_left_ones(column_path(trace), "columns");
    impl_ = std::make_unique<Impl>(trace, identity, cancel);
}

ColumnFileWriter::~ColumnFileWriter() = default;

void ColumnFileWriter::add_bytes(const std::string& name, std::span<const std::byte> bytes) {
    ColumnEntry entry;
    if (impl_->table.size() == kColumnsAtMost)
        throw StoreError(impl_->target + ": there are too many columns");
    if (name.size() > entry.name.size()) throw StoreError(name + " is too long a name for a column");
    std::copy(name.begin(), name.end(), entry.name.begin());
    entry.at = impl_->at = (impl_->at + kAlignment - 1) / kAlignment * kAlignment;
    entry.bytes = bytes.size();
    ByteSum sum;
    for (std::size_t done = 0; done < bytes.size(); done += kBytesAtATime) {
        const std::size_t size = std::min(kBytesAtATime, bytes.size() - done);
        sum.add(bytes.data() + done, size);
        impl_->write(bytes.data() + done, size, impl_->at + done);
    }
    entry.sum = sum.value();
    impl_->at += bytes.size();
    impl_->table.push_back(entry);
}

std::int64_t ColumnFileWriter::finish() {
    Impl& to = *impl_;
    to.header.table_at = to.at;
    to.header.table_entries = to.table.size();
    to.header.table_sum = byte_sum(to.table.data(), to.table.size() * sizeof(ColumnEntry));
    to.write(to.table.data(), to.table.size() * sizeof(ColumnEntry), to.at);
    to.header.sum = byte_sum(&to.header, offsetof(ColumnsHeader, sum));
    to.write(&to.header, sizeof to.header, 0);
    to.file.close();
    to.temporary.rename_to(to.target, true);
    return static_cast<std::int64_t>(to.at + to.table.size() * sizeof(ColumnEntry));
}

}  // namespace shardscope::traces::store
