// Finds CUPTI, and its functions by name.
#include "profiler/cupti/library.h"

#include <initializer_list>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/base/old_symbols.h"

namespace shardscope::profiler::cupti {
namespace {

// Newest first; before 12 the minor version was part of the name.
constexpr const char* kNames[] = {
    "libcupti.so.13",   "libcupti.so.12",   "libcupti.so.11.8", "libcupti.so.11.7", "libcupti.so.11.6",
    "libcupti.so.11.5", "libcupti.so.11.4", "libcupti.so.11.3", "libcupti.so.11.2", "libcupti.so"};
constexpr const char* kRuntimes[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};

bool is_loaded(const char* name) {
    return ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD) != nullptr;  // never closed, so that it stays loaded
}

// The CUDA version that the program uses, by its runtime library ("13"); "" if that is linked statically.
const char* program_version() {
    for (const char* runtime : kRuntimes) {
        if (is_loaded(runtime)) return runtime + strlen("libcudart.so.");
    }
    return "";
}

// The newest CUDA that the kernel's driver supports ("13"), by the number of its branch; "" if unknown.
// Source: the table of CUDA and driver versions in the CUDA Toolkit's release notes.
const char* driver_version() {
    FILE* file = ::fopen("/proc/driver/nvidia/version", "re");
    if (file == nullptr) return "";
    char text[512] = {};
    const std::size_t size = ::fread(text, 1, sizeof text - 1, file);
    ::fclose(file);
    text[size] = '\0';
    // "… Kernel Module  570.86.15  …" or "… Open Kernel Module for x86_64  580.65.06  …"
    for (const char* at = text; *(at += ::strcspn(at, "0123456789")) != '\0';) {
        char* end = nullptr;
        const long branch = ::strtol(at, &end, 10);
        if (*end == '.') return branch >= 580 ? "13" : branch >= 525 ? "12" : branch >= 450 ? "11" : "";
        at = end;
    }
    return "";
}

// Whether the library is of that major version.
bool is_of_version(const char* name, const char* version) {
    constexpr std::size_t kStem = sizeof "libcupti.so." - 1;
    return strlen(name) > kStem && strncmp(name + kStem, version, 2) == 0;
}

void* open_in(const char* folder, const char* below, const char* name) {
    if (folder == nullptr || *folder == 0) return nullptr;
    char path[1024];
    const int size = ::snprintf(path, sizeof path, "%s/%s/%s", folder, below, name);
    if (size < 0 || static_cast<std::size_t>(size) >= sizeof path) return nullptr;
    return ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

void* open_anywhere(const char* name) {
    if (void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return library;
    for (const char* folder : {static_cast<const char*>(::getenv("CUDA_HOME")),
                               static_cast<const char*>(::getenv("CUDA_PATH")), "/usr/local/cuda"}) {
        for (const char* below : {"extras/CUPTI/lib64", "lib64"}) {
            if (void* library = open_in(folder, below, name)) return library;
        }
    }
    return nullptr;
}

void* find_library() {
    for (const char* name : kNames) {
        if (void* library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return library;
    }
    // A library that is newer than the driver does not work.
    const char* version = program_version();
    if (*version == 0) version = driver_version();
    for (const char* name : kNames) {
        if (*version == 0 || !is_of_version(name, version)) continue;
        if (void* library = open_anywhere(name)) return library;
    }
    for (const char* name : kNames) {
        if (void* library = open_anywhere(name)) return library;
    }
    return nullptr;
}

template <typename F>
bool find(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(::dlsym(library, name));
    return function != nullptr;
}

}  // namespace

bool open_cupti(Cupti& cupti, char (&why)[512]) {
    if (&::dlopen == nullptr || &::dlsym == nullptr) {
        ::snprintf(why, sizeof why, "the program has no dlopen(), which opening CUPTI takes");
        return false;
    }
    void* library = find_library();
    if (library == nullptr) {
        ::snprintf(why, sizeof why,
                   "the program uses CUDA but libcupti.so was not found on the library path, in $CUDA_HOME "
                   "or /usr/local/cuda: install CUPTI (a part of the CUDA Toolkit) or set CUDA_HOME");
        return false;
    }
    const char* missing = nullptr;
    const auto need = [&](const char* name, auto*& function) {
        if (!find(library, name, function) && missing == nullptr) missing = name;
    };
    need("cuptiGetVersion", cupti.GetVersion);
    need("cuptiSubscribe", cupti.Subscribe);
    need("cuptiUnsubscribe", cupti.Unsubscribe);
    need("cuptiEnableCallback", cupti.EnableCallback);
    need("cuptiGetCallbackName", cupti.GetCallbackName);
    need("cuptiActivityRegisterCallbacks", cupti.ActivityRegisterCallbacks);
    need("cuptiActivityEnable", cupti.ActivityEnable);
    need("cuptiActivityDisable", cupti.ActivityDisable);
    need("cuptiActivityFlushAll", cupti.ActivityFlushAll);
    need("cuptiActivityGetNextRecord", cupti.ActivityGetNextRecord);
    need("cuptiActivityGetNumDroppedRecords", cupti.ActivityGetNumDroppedRecords);
    need("cuptiActivitySetAttribute", cupti.ActivitySetAttribute);
    need("cuptiActivityPushExternalCorrelationId", cupti.ActivityPushExternalCorrelationId);
    need("cuptiActivityPopExternalCorrelationId", cupti.ActivityPopExternalCorrelationId);
    if (missing != nullptr) {
        ::snprintf(why, sizeof why,
                   "libcupti.so has no %s: it is too old or damaged; install CUDA 11.2 or later", missing);
        return false;
    }
    find(library, "cuptiSubscribe_v2", cupti.Subscribe_v2);
    find(library, "cuptiSetThreadIdType", cupti.SetThreadIdType);
    find(library, "cuptiGetResultString", cupti.GetResultString);
    find(library, "cuptiActivityEnableRuntimeApi", cupti.ActivityEnableRuntimeApi);
    find(library, "cuptiActivityEnableDriverApi", cupti.ActivityEnableDriverApi);
    find(library, "cuptiActivityEnableCudaEventDeviceTimestamps",
         cupti.ActivityEnableCudaEventDeviceTimestamps);
    if (cupti.GetVersion(&cupti.version) != kSuccess || cupti.version < kVersion11_2) {
        ::snprintf(why, sizeof why,
                   "libcupti.so is of version %u, which is older than CUDA 11.2: install a later one",
                   cupti.version);
        return false;
    }
    return true;
}

}  // namespace shardscope::profiler::cupti
