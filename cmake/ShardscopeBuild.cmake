# Compiler settings shared by all rooms, and helpers that keep the rooms' CMake files short.

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

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND)
    message(STATUS "CUDA Toolkit ${CUDAToolkit_VERSION} found: code that needs its headers is built")
else()
    message(STATUS "CUDA Toolkit not found: building without it (nothing else is missing)")
endif()

add_library(shardscope_options INTERFACE)
target_include_directories(shardscope_options INTERFACE "${PROJECT_SOURCE_DIR}")
# Of C and C++; what nvcc is told is in trainer/cuda.
target_compile_options(shardscope_options INTERFACE
    $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 warns falsely about "literal" + std::string (its bug 105651).
    target_compile_options(shardscope_options INTERFACE $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wno-restrict>)
endif()
if(SHARDSCOPE_WERROR)
    target_compile_options(shardscope_options INTERFACE $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Werror>)
endif()
# Addresses of functions are found when a program starts and cannot be written after that.
target_link_options(shardscope_options INTERFACE LINKER:-z,relro,-z,now)
if(SHARDSCOPE_SANITIZE STREQUAL "address")
    add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    add_link_options(-fsanitize=address,undefined)
elseif(SHARDSCOPE_SANITIZE STREQUAL "thread")
    add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
    add_link_options(-fsanitize=thread)
elseif(SHARDSCOPE_SANITIZE)
    message(FATAL_ERROR "SHARDSCOPE_SANITIZE=${SHARDSCOPE_SANITIZE}: use address or thread")
else()
    # A buffer that is overrun on the stack, or by a call of the C library that knows its size, ends the program.
    add_compile_options($<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-fstack-protector-strong>
        "$<$<NOT:$<OR:$<COMPILE_LANGUAGE:CUDA>,$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
endif()

# shardscope_library(NAME SOURCES a.cpp ... [BATCHES n] [ALONE b.cpp ...] LINK lib ...): a static library of one folder.
# SHARDSCOPE_UNITY compiles it in n batches (one for each eight sources, unless said), which a source must share no local
# name with. Neighbours in the list, which are alike, go to different ones. ALONE: sources in no batch.
function(shardscope_library name)
    cmake_parse_arguments(ARG "" "BATCHES" "SOURCES;ALONE;LINK" ${ARGN})
    add_library(${name} STATIC ${ARG_SOURCES} ${ARG_ALONE})
    target_link_libraries(${name} PUBLIC shardscope_options ${ARG_LINK})
    if(NOT SHARDSCOPE_UNITY)
        return()
    endif()
    list(LENGTH ARG_SOURCES count)
    if(NOT ARG_BATCHES)
        math(EXPR ARG_BATCHES "(${count} + 7) / 8")
    endif()
    set(place 0)
    foreach(source IN LISTS ARG_SOURCES)
        math(EXPR batch "${place} % ${ARG_BATCHES}")
        set_property(SOURCE ${source} PROPERTY UNITY_GROUP batch${batch})
        math(EXPR place "${place} + 1")
    endforeach()
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # GCC takes the sources of a batch for headers.
    target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# shardscope_tool(NAME SOURCES a.cpp ... LINK lib ...): one of the four tools, installed.
function(shardscope_tool name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE shardscope_options ${ARG_LINK})
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()
