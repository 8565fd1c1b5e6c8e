# Options of the project, and the two interface targets that carry compile flags: no global flags anywhere.
option(PTARMIGAN_BUILD_TESTS "Build the tests" ON)
option(PTARMIGAN_LONG_TESTS "All tests whole, not the slice of them that fits a continuous integration" "$ENV{PTARMIGAN_LONG_TESTS}")
option(PTARMIGAN_BUILD_BENCHMARKS "Build the benchmarks where their peers (OpenCL, OpenBLAS, OpenMP) are installed" OFF)
option(PTARMIGAN_CUDART_HANDSHAKE "Answer the validity check that NVIDIA's cudart makes of its driver" ON)
set(PTARMIGAN_SANITIZE "" CACHE STRING "Comma-separated sanitizers: address,undefined or thread")
set(PTARMIGAN_TRANSLATOR "" CACHE FILEPATH "A translator of another build for this one's libcuda.so.1; empty: its own is built")

# What the code is built for: x86_64 or aarch64.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(PTARMIGAN_ARCHITECTURE x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(PTARMIGAN_ARCHITECTURE aarch64)
else()
    message(FATAL_ERROR "Ptarmigan runs on x86-64 and AArch64, not on ${CMAKE_SYSTEM_PROCESSOR}")
endif()
# Takes the files of other architectures off a list of sources: their names say what they are for (the test
# architecture_files holds all others to what every CPU has).
function(ptarmigan_keep_architecture ptarmigan_list)
    set(kept "${${ptarmigan_list}}")
    if(NOT PTARMIGAN_ARCHITECTURE STREQUAL "x86_64")
        list(FILTER kept EXCLUDE REGEX "_(x86|avx2|avx512|avx512_[a-z0-9]+|amx)\\.cpp$")
    endif()
    if(NOT PTARMIGAN_ARCHITECTURE STREQUAL "aarch64")
        list(FILTER kept EXCLUDE REGEX "_aarch64\\.cpp$")
    endif()
    set(${ptarmigan_list} "${kept}" PARENT_SCOPE)
endfunction()

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

find_program(PTARMIGAN_CCACHE ccache)
if(PTARMIGAN_CCACHE)
    # ccache keeps objects made with a precompiled header only if told that __TIME__ and what the header defines don't
    # matter, and if -fpch-preprocess names the header in its own preprocessing (its manual, "Precompiled headers").
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${PTARMIGAN_CCACHE}")
    set(CMAKE_C_COMPILER_LAUNCHER "${PTARMIGAN_CCACHE}")
endif()

# Linked by every target of ours: include root, warnings, sanitizers.
add_library(ptarmigan_flags INTERFACE)
target_include_directories(ptarmigan_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
target_compile_options(ptarmigan_flags INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)
# GCC 12 sees overlapping copies in `"text" + std::string` (its bug 105651) and fills the first build with it.
target_compile_options(ptarmigan_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(PTARMIGAN_CCACHE)
    target_compile_options(ptarmigan_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
if(PTARMIGAN_SANITIZE)
    target_compile_options(ptarmigan_flags INTERFACE -fsanitize=${PTARMIGAN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(ptarmigan_flags INTERFACE -fsanitize=${PTARMIGAN_SANITIZE})
endif()
