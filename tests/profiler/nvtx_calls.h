// The NVTX calls that the test programs make, over two backends: the CUDA Toolkit's headers (where they are
// found), and a loader of our own that does what those headers do.
#pragma once

#include <cstdint>

namespace nvtx_calls {

struct Event {  // what the "Ex" calls take
    const char* text = nullptr;
    const wchar_t* wide = nullptr;
    void* registered = nullptr;
    std::uint32_t color = 0, category = 0;  // 0: none
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

}  // namespace nvtx_calls
