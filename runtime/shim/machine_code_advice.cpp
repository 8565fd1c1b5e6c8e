// SPDX-License-Identifier: Apache-2.0
#include "runtime/shim/machine_code_advice.h"

#include <link.h>

#include <algorithm>

namespace ptarmigan::shim {
namespace {

/// A library of NVIDIA's, by how its file's name begins, and what computes the same.
struct Library {
    std::string_view prefix, instead;
};
constexpr Library libraries[] = {
    {"libcublas", "kernels of your own or of CUTLASS, or a BLAS for CPUs"},
    {"libcufft", "kernels of your own, or an FFT for CPUs (FFTW, pocketfft)"},
    {"libcusolver", "a LAPACK for CPUs"},
    {"libcusparse", "kernels of your own, or a sparse library for CPUs"},
    {"libcurand", "cuRAND's device functions (curand_kernel.h), which become PTX"},
    {"libcudnn", "kernels of your own, or a library for CPUs (oneDNN)"},
    {"libcutensor", "kernels of your own or of CUTLASS"},
    {"libnccl", "those of NCCL's kernels that have PTX, which it takes where a device refuses these"},
    {"libnpp", "kernels of your own, or an image library for CPUs"},
    {"libnvjpeg", "a JPEG library for CPUs"},
    {"libnvinfer", "a runtime for CPUs (ONNX Runtime)"},
};

std::string_view file_name_of(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == path.npos ? path : path.substr(slash + 1);
}

} // namespace

std::string machine_code_advice(std::string_view owner, const std::vector<std::string>& objects,
                                const std::string& usual) {
    const std::string_view name = file_name_of(owner);
    for (const Library& library : libraries)
        if (name.starts_with(library.prefix))
            return "NVIDIA's library has no PTX of these kernels and can't be rebuilt, so what calls them needs "
                   "something else: " +
                   std::string(library.instead);
    const bool has_cupy = std::any_of(objects.begin(), objects.end(),
                                      [](const std::string& path) { return path.find("/cupy") != path.npos; });
    if (owner.empty() && has_cupy) return "set CUPY_COMPILE_WITH_PTX=1, with which CuPy hands over PTX";
    return usual;
}

std::vector<std::string> loaded_objects() {
    std::vector<std::string> paths;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* to) {
            if (object->dlpi_name && *object->dlpi_name)
                static_cast<std::vector<std::string>*>(to)->emplace_back(object->dlpi_name);
            return 0;
        },
        &paths);
    return paths;
}

} // namespace ptarmigan::shim
