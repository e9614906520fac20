#include "traces/schema/row_access.h"

#include <sqlite3.h>

namespace shardscope::traces::schema {

void SqlValue::integer(std::int64_t value) const {
    sqlite3_result_int64(context_, value);
}
void SqlValue::real(double value) const {
    sqlite3_result_double(context_, value);
}
void SqlValue::text(std::string_view value) const {
    sqlite3_result_text64(context_, value.data() != nullptr ? value.data() : "", value.size(), SQLITE_STATIC,
                          SQLITE_UTF8);
}
void SqlValue::blob(std::string_view value) const {
    sqlite3_result_blob64(context_, value.data(), value.size(), SQLITE_STATIC);
}

bool LoadedCell::is_null() const {
    return sqlite3_value_type(value_) == SQLITE_NULL;
}
std::int64_t LoadedCell::integer() const {
    return sqlite3_value_int64(value_);
}
double LoadedCell::real() const {
    return sqlite3_value_double(value_);
}
std::string_view LoadedCell::text() const {
    const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(value_));
    const int size = sqlite3_value_bytes(value_);
    return data != nullptr ? std::string_view(data, static_cast<std::size_t>(size)) : std::string_view();
}

}  // namespace shardscope::traces::schema
