// The NVTX calls that the test programs make, over two backends: the CUDA Toolkit's headers (if they are
// found), and our own loader, which does what those headers do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nvtx_calls {

// Bytes in the layout of a schema; the size may be SIZE_MAX.
struct Payload {
    std::uint64_t schema = 0;
    std::size_t size = 0;
    const void* data = nullptr;
};

struct Event {  // the arguments of the "Ex" calls
    const char* text = nullptr;
    const wchar_t* wide = nullptr;
    void* registered = nullptr;
    std::uint32_t color = 0, category = 0;  // 0: none
    int value_type = 0;                     // NVTX's number: 1 u64, 2 i64, 3 double, 4 u32, 5 i32, 6 float
    std::uint64_t value = 0;                // its bytes, in the low end
    std::vector<Payload> payloads{};
};

struct Schema {
    struct Entry {
        std::uint64_t type = 0, flags = 0, detail = 0, offset = 0;
        const char* name = nullptr;
        const char* description = nullptr;
    };
    const char* name = nullptr;
    std::uint64_t type = 1, flags = 0, id = 0;  // id 0: the tool chooses
    std::size_t size = 0, align = 0;            // size 0: not given
    std::vector<Entry> entries{};
};

struct Enumeration {
    struct Entry {
        const char* name = nullptr;
        std::uint64_t value = 0;
        bool is_flag = false;
    };
    const char* name = nullptr;
    std::uint64_t id = 0;
    std::size_t size = 0;
    std::vector<Entry> entries{};
};

void mark_a(const char* text);
void mark_w(const wchar_t* text);
void mark_ex(const Event& event);
int push_a(const char* text);
int push_w(const wchar_t* text);
int push_ex(const Event& event);
int pop();
std::uint64_t start_a(const char* text);
std::uint64_t start_w(const wchar_t* text);
std::uint64_t start_ex(const Event& event);
void end(std::uint64_t id);
void name_category_a(std::uint32_t category, const char* name);
void name_category_w(std::uint32_t category, const wchar_t* name);
void name_thread_a(std::uint32_t tid, const char* name);
void name_thread_w(std::uint32_t tid, const wchar_t* name);

void* domain_create_a(const char* name);
void* domain_create_w(const wchar_t* name);
void domain_destroy(void* domain);
void* register_a(void* domain, const char* text);
void* register_w(void* domain, const wchar_t* text);
void domain_mark(void* domain, const Event& event);
int domain_push(void* domain, const Event& event);
int domain_pop(void* domain);
std::uint64_t domain_start(void* domain, const Event& event);
void domain_end(void* domain, std::uint64_t id);
void domain_name_category_a(void* domain, std::uint32_t category, const char* name);
void domain_name_category_w(void* domain, std::uint32_t category, const wchar_t* name);

void initialize();
void* resource_create(void* domain, const char* name);
void resource_destroy(void* resource);

// The payload extension.
std::uint64_t register_schema(void* domain, const Schema& schema);
std::uint64_t register_enum(void* domain, const Enumeration& enumeration);
std::uint64_t register_scope(void* domain, const char* path, std::uint64_t parent, std::uint64_t id);
void mark_payload(void* domain, const std::vector<Payload>& payloads);
int push_payload(void* domain, const std::vector<Payload>& payloads);
int pop_payload(void* domain, const std::vector<Payload>& payloads);
std::uint64_t start_payload(void* domain, const std::vector<Payload>& payloads);
void end_payload(void* domain, std::uint64_t id, const std::vector<Payload>& payloads);
bool domain_is_enabled(void* domain);
std::int64_t timestamp();

}  // namespace nvtx_calls
