# Compiler settings shared by all libraries, and helpers that keep their CMake files short.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# A library requests -O2 or -O3 if measurements show that it helps; elsewhere it only makes compiling a quarter slower.
string(REPLACE "-O3" "-O1" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
    message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION} found: code that needs its headers is built")
else()
    message(STATUS "CUDA Toolkit not found: building without it (nothing else is missing)")
endif()

add_library(shardscope_options INTERFACE)
target_include_directories(shardscope_options INTERFACE "${PROJECT_SOURCE_DIR}")
# Options for C and C++; those for nvcc are in trainer/cuda.
target_compile_options(shardscope_options INTERFACE
    $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC spends a twentieth of its time on garbage collection; with a heap of 400 MB (given in kB) it rarely collects.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=400000>)
    # GCC 12 warns falsely about "literal" + std::string (its bug 105651).
    target_compile_options(shardscope_options INTERFACE $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wno-restrict>)
endif()
if(SHARDSCOPE_WERROR)
    target_compile_options(shardscope_options INTERFACE $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Werror>)
endif()
find_program(SHARDSCOPE_LLD ld.lld)
if(SHARDSCOPE_LLD)  # links a test in a quarter of the time
    add_link_options($<$<LINK_LANGUAGE:C,CXX>:-fuse-ld=lld>)
endif()
# Function addresses are resolved when a program starts and are read-only after that.
target_link_options(shardscope_options INTERFACE LINKER:-z,relro,-z,now)
if(SHARDSCOPE_SANITIZE STREQUAL "address")
    add_compile_definitions(SHARDSCOPE_SANITIZED SHARDSCOPE_SANITIZED_ADDRESS)
    add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=address,undefined)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")  # for the fuzz targets: libFuzzer is guided by their coverage
        add_compile_options(-fsanitize=fuzzer-no-link)
    endif()
elseif(SHARDSCOPE_SANITIZE STREQUAL "thread")
    add_compile_definitions(SHARDSCOPE_SANITIZED SHARDSCOPE_SANITIZED_THREAD)
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
elseif(SHARDSCOPE_SANITIZE)
    message(FATAL_ERROR "SHARDSCOPE_SANITIZE=${SHARDSCOPE_SANITIZE}: use address or thread")
else()
    # A buffer that is overrun on the stack, or by a call of the C library that knows its size, ends the program.
    add_compile_options($<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fstack-protector-strong>
        "$<$<NOT:$<OR:$<COMPILE_LANGUAGE:CUDA>,$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()

# The headers that most sources include, compiled once (SHARDSCOPE_PCH). GCC 12 then no longer knows which code came
# from a system header, and warns falsely about <string>: those warnings are off.
set(shardscope_pch_options "$<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-maybe-uninitialized>")
if(SHARDSCOPE_PCH)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/generated/headers.cpp" CONTENT "\n")
    add_library(shardscope_headers OBJECT EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/generated/headers.cpp")
    target_link_libraries(shardscope_headers PRIVATE shardscope_options fmt::fmt)
    target_precompile_headers(shardscope_headers PRIVATE
        <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <deque> <filesystem>
        <fstream> <functional> <iterator> <map> <memory> <mutex> <optional> <set> <span> <stdexcept> <string>
        <string_view> <system_error> <thread> <tuple> <unordered_map> <variant> <vector> <fmt/core.h>)
endif()

# shardscope_library(NAME [EXACT | COLD] [FOLDERS f ...] [SOURCES a.cpp ...] [FAST b.cpp ...] [ALONE c.cpp ...]
# LINK lib ...): a static library. FOLDERS: every .cpp of these folders that no other argument names and that is not
# main.cpp. EXACT: fast arithmetic whose bits do not depend on how the compiler vectorises. COLD: code that prints,
# reads options or waits for the user, where -Og makes compiling a quarter faster and nothing measurably slower. FAST:
# sources that -O2 makes measurably faster. ALONE: other sources that, like those of FAST, are in no batch. Sources of
# one batch share no local name.
function(shardscope_library name)
    cmake_parse_arguments(ARG "EXACT;COLD" "" "FOLDERS;SOURCES;FAST;ALONE;LINK" ${ARGN})
    foreach(folder IN LISTS ARG_FOLDERS)
        file(GLOB found CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}"
             "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
        list(TRANSFORM found REPLACE "^\\./" "")
        list(REMOVE_ITEM found main.cpp ${ARG_SOURCES} ${ARG_FAST} ${ARG_ALONE})
        list(APPEND folder_sources ${found})
    endforeach()
    list(APPEND ARG_SOURCES ${folder_sources})
    add_library(${name} STATIC ${ARG_SOURCES} ${ARG_FAST} ${ARG_ALONE})
    target_link_libraries(${name} PUBLIC shardscope_options ${ARG_LINK})
    if(ARG_EXACT)
        target_compile_options(${name} PRIVATE
            -ffp-contract=off -fno-math-errno -fno-trapping-math $<$<NOT:$<CONFIG:Debug>>:-O3>)
    elseif(SHARDSCOPE_PCH AND "fmt::fmt" IN_LIST ARG_LINK)
        target_precompile_headers(${name} REUSE_FROM shardscope_headers)
        target_compile_options(${name} PRIVATE ${shardscope_pch_options})
    endif()
    if(ARG_COLD)
        target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    endif()
    # Precompiled headers have one optimization level.
    set_source_files_properties(${ARG_FAST} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O2> SKIP_PRECOMPILE_HEADERS ON)
    shardscope_batches(${name} ${ARG_SOURCES})
endfunction()

# shardscope_batches(TARGET a.cpp ...): with SHARDSCOPE_UNITY compiles up to 32 of them at a time, each with its
# neighbours, which read much the same headers.
function(shardscope_batches name)
    if(NOT SHARDSCOPE_UNITY)
        return()
    endif()
    list(LENGTH ARGN count)
    math(EXPR batches "(${count} + 31) / 32")
    set(place 0)
    foreach(source IN LISTS ARGN)
        math(EXPR batch "${place} * ${batches} / ${count}")
        set_property(SOURCE ${source} PROPERTY UNITY_GROUP batch${batch})
        math(EXPR place "${place} + 1")
    endforeach()
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # GCC treats the sources of a batch as headers.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# shardscope_tool(NAME SOURCES a.cpp ... LINK lib ...): one of the four tools, installed.
function(shardscope_tool name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE shardscope_options ${ARG_LINK})
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    shardscope_batches(${name} ${ARG_SOURCES})
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
