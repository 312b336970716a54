# Warnings, optimisation and sanitizers for all of our targets.
add_library(tagine_flags INTERFACE)
target_compile_options(tagine_flags INTERFACE -Wall -Wextra -Wshadow -Wmissing-prototypes -Wvla
                       -Wstrict-prototypes -fno-math-errno -ffp-contract=off)
target_compile_definitions(tagine_flags INTERFACE _GNU_SOURCE)
if(TAGINE_WERROR)
  target_compile_options(tagine_flags INTERFACE -Werror)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O0 -g")

if(TAGINE_SANITIZE)
  target_compile_options(tagine_flags INTERFACE -fsanitize=${TAGINE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all -g -O1)
  target_link_options(tagine_flags INTERFACE -fsanitize=${TAGINE_SANITIZE})
endif()
if(TAGINE_FUZZ)
  target_compile_options(tagine_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
