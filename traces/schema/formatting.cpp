// The function that fmt::format_to() calls. libfmt exports it under GCC's name; clang mangles it differently.
#ifdef __clang__
#include <fmt/format.h>

template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::basic_string_view<char>,
                                            fmt::basic_format_args<fmt::buffer_context<char>>,
                                            fmt::detail::locale_ref);
#endif
