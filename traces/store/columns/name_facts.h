// Facts that follow from a name alone, computed once per name: rows share a few thousand. Internal to the
// store.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/store/columns/names.h"
#include "traces/store/columns/trace.h"

namespace shardscope::traces::store {

class NameFacts {
  public:
    explicit NameFacts(StringTable& strings) : strings_(strings) {}

    // An API's name without its version.
    schema::StringId call(schema::StringId name) {
        std::optional<schema::StringId>& known = at(calls_, name);
        if (!known) {
            const std::string_view text = strings_[name];
            const std::string_view plain = without_version_suffix(text);
            const schema::StringId id = plain.size() == text.size() ? name : strings_.intern(plain);
            at(calls_, name) = id;
            return id;
        }
        return *known;
    }
    // A kernel's name is the demangled one, as in Kineto and nsys stats, since templates with the same short
    // name are different kernels; the short one if the demangled one is unknown. Either can identify
    // communication.
    struct Kernel {
        schema::StringId name = schema::StringId::empty;
        DeviceKind kind = DeviceKind::kernel;
    };
    Kernel kernel(schema::StringId short_name, schema::StringId demangled) {
        const schema::StringId name = demangled != schema::StringId::empty ? demangled : short_name;
        DeviceKind kind = kernel_kind(name);
        if (kind == DeviceKind::kernel && short_name != name) kind = kernel_kind(short_name);
        return {name, kind};
    }
    // `kernel` or `communication`.
    DeviceKind kernel_kind(schema::StringId name) {
        std::optional<DeviceKind>& known = at(kernels_, name);
        if (!known) {
            known = schema::is_communication_kernel(strings_[name]) ? DeviceKind::communication
                                                                    : DeviceKind::kernel;
        }
        return *known;
    }
    schema::StringId memcpy(int copy_kind) {
        std::optional<schema::StringId>& known = copies_[known_copy_kind(copy_kind)];
        if (!known) known = strings_.intern(memcpy_name(copy_kind));
        return *known;
    }
    schema::StringId memset() {
        if (!memset_) memset_ = strings_.intern("Memset");
        return *memset_;
    }

    static std::uint8_t known_copy_kind(std::int64_t kind) {
        return kind >= 0 && kind <= std::numeric_limits<std::uint8_t>::max() ? static_cast<std::uint8_t>(kind)
                                                                             : std::uint8_t{0};
    }

  private:
    template <typename T>
    T& at(std::vector<T>& column, schema::StringId name) {
        const auto index = static_cast<std::size_t>(name);
        if (index >= column.size()) column.resize(strings_.size());
        return column[index];
    }
    StringTable& strings_;
    std::vector<std::optional<schema::StringId>> calls_;
    std::vector<std::optional<DeviceKind>> kernels_;
    std::optional<schema::StringId> copies_[256], memset_;
};

}  // namespace shardscope::traces::store
