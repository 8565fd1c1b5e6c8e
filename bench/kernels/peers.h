// SPDX-License-Identifier: Apache-2.0
// Makers of the peers; those whose library was not there at build time are missing from the build.
#pragma once

#include "bench/kernels/kernel_case.h"

#include <memory>

namespace bench {

/// `library` is a libcuda.so; throws std::runtime_error if it or the PTX can't be loaded.
std::unique_ptr<Peer> make_cuda_peer(const std::string& library, const std::string& ptx_file);
/// `folder` holds kernels.cl.
std::unique_ptr<Peer> make_opencl_peer(const std::string& folder);
/// The case's own OpenMP, BLAS and lane forms.
std::unique_ptr<Peer> make_openmp_peer();
std::unique_ptr<Peer> make_blas_peer();
std::unique_ptr<Peer> make_lanes_peer();

} // namespace bench
