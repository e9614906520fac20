#include "trainer/data/image_files.h"

#include "trainer/data/cifar.h"
#include "trainer/data/dataset.h"

namespace shardscope::trainer::data {

std::unique_ptr<ImageFiles> open_images(const std::string& key, const std::string& path, int classes) {
    try {
        return std::make_unique<CifarImages>(path, classes);
    } catch (const DataError& error) {
        const std::string path_key = "data.path";  // which the formats name
        if (error.key() != path_key || key == path_key) throw;
        throw DataError(key, std::string(error.what()).substr(path_key.size() + 2));
    }
}

}  // namespace shardscope::trainer::data
