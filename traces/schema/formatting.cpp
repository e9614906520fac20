// Instantiates the function that fmt::format_to() calls: libfmt exports it as GCC mangles it, not as clang
// does.
#ifdef __clang__
#include <fmt/format.h>

template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::basic_string_view<char>,
                                            fmt::basic_format_args<fmt::buffer_context<char>>,
                                            fmt::detail::locale_ref);
#endif
