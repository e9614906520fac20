#include "trainer/checkpoint/torch_file.h"

#include <cstddef>

#include <zlib.h>

#include "traces/import/pickle/pickle_text.h"

namespace shardscope::trainer::checkpoint {

namespace pickled = traces::pickled;

namespace {

using pickled::little_endian;

constexpr std::size_t kAligned = 64;

// A zip archive of stored entries, of which the last may be left to be written by others.
class Archive {
  public:
    void add(const std::string& name, const std::string& bytes) {
        start(name, bytes.size(), zip_checksum(std::as_bytes(std::span(bytes))), 0);
        text_ += bytes;
    }

    // The header of an entry whose bytes begin at a multiple of 64.
    void start_aligned(const std::string& name, std::size_t bytes, std::uint32_t checksum) {
        const std::size_t begin = text_.size() + kLocalHeader + name.size() + kExtraHeader;
        start(name, bytes, checksum, kExtraHeader + (kAligned - begin % kAligned) % kAligned);
    }

    const std::string& text() const { return text_; }

    // The directory, which follows `bytes` bytes of the archive.
    std::string directory(std::size_t bytes) const {
        const std::string count = little_endian(static_cast<std::uint64_t>(entries_), 2);
        return directory_ + "PK\5\6" + little_endian(0, 4) + count + count +
               little_endian(directory_.size(), 4) + little_endian(bytes, 4) + little_endian(0, 2);
    }

  private:
    static constexpr std::size_t kLocalHeader = 30, kExtraHeader = 4;

    // `extra`: bytes of an extra field of zeros ("FB", as PyTorch calls its own); 0: none.
    void start(const std::string& name, std::size_t bytes, std::uint32_t checksum, std::size_t extra) {
        constexpr std::uint64_t kVersion = 20, kNoFlags = 0, kStored = 0, kFirstOf1980 = 33;
        std::string common =
            little_endian(kVersion, 2) + little_endian(kNoFlags, 2) + little_endian(kStored, 2) +
            little_endian(0, 2) + little_endian(kFirstOf1980, 2) + little_endian(checksum, 4) +
            little_endian(bytes, 4) + little_endian(bytes, 4) + little_endian(name.size(), 2);
        ++entries_;
        directory_ += "PK\1\2" + little_endian(kVersion, 2) + common + little_endian(0, 2) +
                      little_endian(0, 2) + little_endian(0, 2) + little_endian(0, 2) + little_endian(0, 4) +
                      little_endian(text_.size(), 4) + name;
        text_ += "PK\3\4" + common + little_endian(extra, 2) + name;
        if (extra == 0) return;
        text_ += "FB" + little_endian(extra - kExtraHeader, 2) + std::string(extra - kExtraHeader, '\0');
    }

    std::string text_, directory_;
    int entries_ = 0;
};

Archive archive_of(const std::string& value) {
    Archive archive;
    archive.add("archive/data.pkl", pickled::whole(value));
    archive.add("archive/byteorder", "little");
    archive.add("archive/version", "3\n");
    return archive;
}

std::string pickle_of(const TorchTensor& tensor, std::int64_t elements) {
    const std::string storage =
        pickled::tuple({pickled::text("storage"), pickled::global("torch", tensor.storage),
                        pickled::text("0"), pickled::text("cpu"), pickled::integer(elements)}) +
        "Q";
    return pickled::call(pickled::global("torch._utils", "_rebuild_tensor_v2"),
                         {storage, pickled::integer(tensor.offset), pickled::integers(tensor.sizes),
                          pickled::integers(tensor.strides), pickled::boolean(false),
                          pickled::call(pickled::global("collections", "OrderedDict"), {})});
}

}  // namespace

std::uint32_t zip_checksum(std::span<const std::byte> bytes, std::uint32_t before) {
    return static_cast<std::uint32_t>(
        ::crc32(before, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

TorchFrame torch_frame(const TorchTensor& tensor, std::int64_t bytes, std::uint32_t checksum) {
    const std::int64_t element = tensor.storage == "LongStorage" ? 8 : 4;
    Archive archive = archive_of(pickle_of(tensor, bytes / element));
    const auto size = static_cast<std::size_t>(bytes);
    archive.start_aligned("archive/data/0", size, checksum);
    return {archive.text(), archive.directory(archive.text().size() + size)};
}

std::string torch_object(const std::string& value) {
    const Archive archive = archive_of(value);
    return archive.text() + archive.directory(archive.text().size());
}

std::string torch_tensor(const TorchTensor& tensor, const std::string& numbers) {
    const TorchFrame frame =
        torch_frame(tensor, std::ssize(numbers), zip_checksum(std::as_bytes(std::span(numbers))));
    return frame.before + numbers + frame.after;
}

}  // namespace shardscope::trainer::checkpoint
