#include "trainer/checkpoint/torch_read.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "traces/import/pickle/pickle.h"
#include "traces/store/error.h"
#include "trainer/checkpoint/error.h"

namespace shardscope::trainer::checkpoint {

namespace {

using traces::importer::Value;

constexpr auto kTensorClasses = std::to_array<std::string_view>(
    {"torch._utils._rebuild_tensor_v2", "torch.FloatStorage", "torch.BFloat16Storage", "torch.HalfStorage",
     "torch.DoubleStorage", "torch.LongStorage", "torch.IntStorage", "torch.BoolStorage", "torch.ByteStorage",
     "collections.OrderedDict"});
constexpr std::int64_t kMostPickle = 1 << 20;  // of one tensor's few numbers and names

// One archive; its few entries are read, not their contents.
class ArchiveReader {
  public:
    ArchiveReader(const File& file, std::int64_t offset, std::int64_t length, const std::string& name)
        : file_(file), offset_(offset), length_(length), name_(name) {
        read_directory();
    }

    struct Entry {
        std::int64_t begin = 0, bytes = 0;  // offset in the file
    };
    // The entry whose name ends so, after the archive's folder.
    Entry entry(std::string_view suffix) const {
        for (const auto& [name, entry] : entries_) {
            if (name.size() > suffix.size() && name.substr(name.find('/') + 1) == suffix) return entry;
        }
        fail(fmt::format("has no {}", suffix));
    }
    std::string content(const Entry& entry) const {
        if (entry.bytes > kMostPickle) fail("has a pickle that is too large for a tensor");
        return bytes(entry.begin, entry.bytes);
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw CheckpointError(
            fmt::format("{}: {}; it is damaged or not what torch.save writes for a tensor", name_, what));
    }

  private:
    static constexpr std::int64_t kEnd = 22, kDirectoryEntry = 46, kLocalHeader = 30;

    std::string bytes(std::int64_t at, std::int64_t count) const {
        std::string text(static_cast<std::size_t>(count), '\0');
        file_.read(std::as_writable_bytes(std::span(text)), at);
        return text;
    }
    static std::int64_t number(std::string_view text, std::int64_t at, int bytes) {
        std::uint64_t value = 0;
        for (int i = bytes; i-- > 0;)
            value = value << 8 | static_cast<unsigned char>(text[static_cast<std::size_t>(at + i)]);
        return static_cast<std::int64_t>(value);
    }

    // Offsets of an archive are from its first byte on; all are below 4 GiB.
    void read_directory() {
        if (length_ < kEnd) fail("is cut off");
        const std::string end = bytes(offset_ + length_ - kEnd, kEnd);
        if (!end.starts_with("PK\5\6") || number(end, 20, 2) != 0) fail("has no directory at its end");
        const std::int64_t count = number(end, 10, 2), size = number(end, 12, 4), start = number(end, 16, 4);
        constexpr std::int64_t kFull = 0xFFFFFFFF;
        if (start == kFull || size == kFull)
            fail("is larger than 4 GiB, which cannot be read; save it from more ranks");
        if (start + size > length_ - kEnd || size > kMostPickle) fail("has a directory beyond its end");
        const std::string directory = bytes(offset_ + start, size);
        std::int64_t at = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            if (size - at < kDirectoryEntry ||
                directory.compare(static_cast<std::size_t>(at), 4, "PK\1\2") != 0)
                fail("has a damaged directory");
            const std::int64_t method = number(directory, at + 10, 2), packed = number(directory, at + 20, 4),
                               plain = number(directory, at + 24, 4), name = number(directory, at + 28, 2),
                               extra = number(directory, at + 30, 2), comment = number(directory, at + 32, 2),
                               local = number(directory, at + 42, 4);
            if (size - at - kDirectoryEntry < name + extra + comment) fail("has a damaged directory");
            if (method != 0 || packed != plain) fail("is compressed, which cannot be read");
            if (local > start - kLocalHeader) fail("has an entry beyond its end");
            const std::string header = bytes(offset_ + local, kLocalHeader);
            const std::int64_t begin = local + kLocalHeader + number(header, 26, 2) + number(header, 28, 2);
            if (!header.starts_with("PK\3\4") || begin > start || plain > start - begin)
                fail("has an entry beyond its end");
            entries_.emplace_back(directory.substr(static_cast<std::size_t>(at + kDirectoryEntry),
                                                   static_cast<std::size_t>(name)),
                                  Entry{offset_ + begin, plain});
            at += kDirectoryEntry + name + extra + comment;
        }
    }

    const File& file_;
    const std::int64_t offset_, length_;
    const std::string& name_;
    std::vector<std::pair<std::string, Entry>> entries_;
};

std::optional<std::vector<std::int64_t>> counts_in(const Value& list) {
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::optional<std::int64_t> number = list[i].integer();
        if (!list.is_list() || number.value_or(-1) < 0) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

}  // namespace

StoredTensor read_torch_tensor(const File& file, std::int64_t offset, std::int64_t length,
                               const std::string& name) {
    const ArchiveReader archive(file, offset, length, name);
    if (archive.content(archive.entry("byteorder")) != "little") archive.fail("is not little-endian");
    const std::string pickled = archive.content(archive.entry("data.pkl"));
    traces::importer::ParsedPickle parsed;
    try {
        auto input = traces::importer::Input::of_memory(name, pickled);
        parsed = traces::importer::parse_pickle(input, {.classes = kTensorClasses});
    } catch (const traces::store::StoreError& error) {
        throw CheckpointError(error.what());
    }
    // ["torch._utils._rebuild_tensor_v2", [storage, offset, sizes, strides, …]], where the storage is
    // ["persistent", ["storage", class, key, device, elements]].
    const Value call = parsed.tree.root(), arguments = call[std::size_t{1}];
    const Value storage = arguments[std::size_t{0}][std::size_t{1}];
    const std::optional<std::int64_t> first = arguments[1].integer();
    const auto sizes = counts_in(arguments[2]), strides = counts_in(arguments[3]);
    const std::string_view type = storage[1].text();
    constexpr std::string_view kModule = "torch.";
    if (call[std::size_t{0}].text() != kTensorClasses[0] || arguments.size() < 4 || storage.size() < 5 ||
        !type.starts_with(kModule) || first.value_or(-1) < 0 || !sizes || !strides ||
        sizes->size() != strides->size()) {
        archive.fail("does not contain exactly one tensor");
    }
    const ArchiveReader::Entry numbers = archive.entry(fmt::format("data/{}", storage[2].text()));
    return {
        {std::string(type.substr(kModule.size())), *sizes, *strides, *first}, numbers.begin, numbers.bytes};
}

}  // namespace shardscope::trainer::checkpoint
