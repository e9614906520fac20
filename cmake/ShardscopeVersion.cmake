# The version of project() as a header: "version.h" with shardscope::kVersion.
file(WRITE "${PROJECT_BINARY_DIR}/generated/shardscope/version.h.in"
"// Generated from project(VERSION) in CMakeLists.txt.\n#pragma once\n\nnamespace shardscope {\ninline constexpr const char* kVersion = \"@PROJECT_VERSION@\";\n}  // namespace shardscope\n")
configure_file("${PROJECT_BINARY_DIR}/generated/shardscope/version.h.in"
               "${PROJECT_BINARY_DIR}/generated/shardscope/version.h" @ONLY)
target_include_directories(shardscope_options INTERFACE "${PROJECT_BINARY_DIR}/generated")
