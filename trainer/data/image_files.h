// The files of a job's images, whatever their format: a number of pictures, each with the class of its label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::trainer::data {

// A picture as bytes of red, green and blue from 0 to 255. Its rows follow each other; `pixel` and `channel`
// are the steps from one pixel and one channel to the next (channel 0: it is grey).
struct Picture {
    int height = 0, width = 0;
    const unsigned char* bytes = nullptr;
    std::size_t pixel = 0, channel = 0;

    const unsigned char* row(int y) const {
        return bytes + static_cast<std::size_t>(y) * static_cast<std::size_t>(width) * pixel;
    }
};

// Immutable, so that any number of threads may use it.
class ImageFiles {
  public:
    virtual ~ImageFiles() = default;

    virtual std::int64_t images() const = 0;
    virtual std::int32_t label(std::int64_t image) const = 0;
    // The picture's bytes are in memory of this object, or in `room`. Throws DataError if its file cannot be
    // read as a picture.
    virtual Picture open(std::int64_t image, std::vector<unsigned char>& room) const = 0;
    // Whether open() reads and decodes a file each time.
    virtual bool decodes() const { return false; }
    // The names of the classes, in the order of their labels; empty: the files do not say.
    virtual std::vector<std::string> class_names() const { return {}; }
};

// Which files of a folder are read, where a format has both (CIFAR, MNIST).
enum class ImageSet : std::uint8_t { training, test };

// The file or folder at `path`, which the key names: data.path, or data.validation_path for the test set.
// Throws DataError if it has no images, if a file is damaged, or if a label is not below `classes`.
std::unique_ptr<ImageFiles> open_images(const std::string& key, const std::string& path, int classes);

}  // namespace shardscope::trainer::data
