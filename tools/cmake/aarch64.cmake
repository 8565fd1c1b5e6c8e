# Toolchain of the preset aarch64: Debian's cross compiler, the sysroot that tools/cross unpacks, qemu to run what is made.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(PTARMIGAN_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../../build-aarch64/sysroot" CACHE PATH
    "Debian's arm64 packages, unpacked (tools/cross)")
get_filename_component(PTARMIGAN_SYSROOT "${PTARMIGAN_SYSROOT}" ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PTARMIGAN_SYSROOT)
# Libraries come from the sysroot; libc and libstdc++ are the cross compiler's own, so it is no --sysroot for the compiler.
set(CMAKE_FIND_ROOT_PATH "${PTARMIGAN_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${PTARMIGAN_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${PTARMIGAN_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${PTARMIGAN_SYSROOT}/usr/share/pkgconfig")
add_link_options("LINKER:-rpath-link,${PTARMIGAN_SYSROOT}/usr/lib/aarch64-linux-gnu")

# What runs the build's own generators and the tests that ctest starts.
set(CMAKE_CROSSCOMPILING_EMULATOR "${PTARMIGAN_SYSROOT}/../qemu/usr/bin/qemu-aarch64" -L /usr/aarch64-linux-gnu)
